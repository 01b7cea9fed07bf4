"""The intermediate representation: values, nodes and their metadata, the builder, the verifier, dumps."""
