"""Recurrent networks in ONNX files."""
