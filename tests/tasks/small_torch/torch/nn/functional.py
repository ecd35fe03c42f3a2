"""The F of torch lines."""
