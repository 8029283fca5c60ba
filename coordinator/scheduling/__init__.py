"""When code runs on the event loop: the timers, the queue at the end of a loop tick, replies that come later."""
