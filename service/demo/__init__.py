"""`make demo`: the whole loop on one machine, every part a real process talking real HTTP."""
