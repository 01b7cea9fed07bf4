"""Operations on images other than convolutions and pools."""
