"""QQ's vocabulary, shared by all slices: frozen data, no I/O, no threads, no logging."""
