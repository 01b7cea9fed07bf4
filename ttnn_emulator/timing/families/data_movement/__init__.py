"""Operations that move values: between memories, layouts and shapes."""
