"""Operations over the chips of a mesh: gathering, reducing, broadcasting, sending."""
