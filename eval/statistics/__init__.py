"""How sure a difference is: clustered bootstrap, paired permutation, correction for many comparisons, power."""
