"""Where bulk recovery runs: worker processes of this machine, or a Ray cluster."""
