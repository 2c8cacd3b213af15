"""The parts of a Transformer: residual connections and norms."""
