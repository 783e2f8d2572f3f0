"""A stand-in engine that speaks as a real SGLang does, driven by declared scenarios."""
