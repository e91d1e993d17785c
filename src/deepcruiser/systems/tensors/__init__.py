"""What the ONNX and TensorFlow Lite adapters share: networks of named tensors."""
