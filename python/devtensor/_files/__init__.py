"""Files with arrays: what save and load do, safetensors, and files that are there as a whole or not at all."""
