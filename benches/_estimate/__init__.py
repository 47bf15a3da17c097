"""Made-up histories with the statistics of published ones, and how well they are foreseen."""
