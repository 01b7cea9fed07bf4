"""Operations of chunked prefill: caches, rotary embeddings, and routing of tokens to experts."""
