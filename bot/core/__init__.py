"""The words everybody speaks: frozen data, no I/O, no threads, no logging."""
