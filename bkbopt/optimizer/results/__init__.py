"""What the log and the models say: best trials, predictions, recommendations and certificates."""
