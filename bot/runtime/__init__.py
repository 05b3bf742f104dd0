"""The process itself: clock, loop, collector, reloading, observers, watchdog."""
