"""Recurrent models: RNN, LSTM, GRU, stacks of them, and language models on top."""
