"""The chain reader: cheap evidence first, and a small pretrained network for the few chains worth reading."""
