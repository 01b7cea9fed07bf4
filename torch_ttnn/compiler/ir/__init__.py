"""What graphs and programs are made of: values, nodes and their metadata, the builder, the verifier, dumps."""
