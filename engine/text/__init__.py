"""Text: read it, cut it into tokens, number the tokens, cut the numbers into batches."""
