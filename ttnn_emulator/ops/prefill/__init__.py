"""Operations of chunked prefill: caches, rotary embeddings, tokens on their way to experts."""
