"""Attention: scores and weights, kernel regression, many heads, and positions."""
