"""Series of numbers and of characters predicted from their own past."""
