"""The codebooks of the IQ2 and IQ3 types: lists of points, each the magnitudes of 8 or 4 weights at once.

A block holds the number of a point. A list is a choice out of all points that a few levels make; its order is that of
the points read as numbers, the first weight the lowest digit. So a bit for each possible point is enough; these bits
are stored here, compressed.

Source: ``iq2xxs_grid``, ``iq2xs_grid``, ``iq2s_grid``, ``iq3xxs_grid``, ``iq3s_grid`` in ggml's ``ggml-common.h``. The
bits were read out of ggml's decoder, and a test reads them again.
"""

from __future__ import annotations

import base64
import zlib

import numpy as np

from .common import f32

_LEVELS_OF_2_BITS = np.array([8, 25, 43], f32)


def codebook(packed: str, levels: np.ndarray, width: int) -> np.ndarray:
    """The points of a list: (points, width) float32."""
    chosen = np.unpackbits(np.frombuffer(zlib.decompress(base64.b85decode(packed)), np.uint8))
    digits = np.flatnonzero(chosen)[:, None] // len(levels) ** np.arange(width) % len(levels)
    points: np.ndarray = levels[digits]
    return points


def signs(bits: np.ndarray) -> np.ndarray:
    """Bits as signs: 1, or -1 where a bit is set.   (...) uint8   ->   (..., 8) float32, the lowest bit first."""
    return f32(1) - np.unpackbits(bits[..., None], axis=-1, bitorder="little") * f32(2)


def signs_of_seven(bits: np.ndarray) -> np.ndarray:
    """Seven signs; the eighth makes the number of minus signs even.   (...) below 128   ->   (..., 8) float32."""
    bits = bits.astype(np.uint8)
    odd = np.bitwise_count(bits) & np.uint8(1)
    return signs(bits | odd << np.uint8(7))


IQ2_XXS = codebook(
    "c-nPRORj`4470MbdWwiuj~R8vF<3s$DPNNQV8mEdDvh1mfzMz4@MsNM4-kL~Dg?0u3Z<Q}s#5&i%a^YL7=qILyw)W4Cso8iRnlpCLd`c4Du;C<Rl"
    "H?aajd+e<FY7)k8>WSTt@47wX1jPqB41q=2e+&9hy;#r#nzQ(d`wV2I-N(E<X_7hks$x7)Do8!;TEvZcdv+$;Bf*s-;99+U-&7)=?KnsoS&M%ZZj"
    "W8ztGaG<oin^)>q~!#84@<5Q?C;cAe-jqH$lW6s<jvF<nQc*Z$~yKl@H%B$)D{-`Y{-_v~Aze0c0{sHUUCpi",
    _LEVELS_OF_2_BITS,
    8,
)
IQ2_XS = codebook(
    "c-mc2ORj`4470L|dWwh@;*?QWh*MOoP)|Aew9xme83;|{*iP^L>UVu^J$f&9<)%0;rYcZH@zkTcz*1-`0#F4vd)cqIa~EY0S(m36us~sl4e+uqnt"
    "+xnD5p1ifdk&k2^cqyDKl&hVwLuN#<u{Y#82-D2r2AS*#~B;6>b%zZ?$An2Qav5OyP;?IjC1*OUa>YNXBOJs!l*N%2M9ag1pZ#qbS<pDODX)Ys@F"
    "iGwcn?g7z}ZUJ85J?WuXe7)kq!xj_MC=sehbo`f6hw91-EjVApg;SBK(#S-ctqy5bslAAu_xaBeODLPcR%XL4jpOCvsj1dP@iIwgyVBr<uBI!nKM"
    "uUZZ1qQNNP<bV}FGN4KvRv{ky>(2~*Gt;x6q$P={6Cb#@3Dfxx_wWh`vWo0U*P",
    _LEVELS_OF_2_BITS,
    8,
)
IQ2_S = codebook(
    "c-n1JOKt@r42!agI0c#&;*=39#3>LflvCCTO#7-9jpk=;Y=fB%TefG%OIlXuE_Fz<Ougf=%xu>+l3Bq8hyjg~lMrunmZ<Wy`~YGiEi#3On5vBd<v"
    "mKZSi%aW(psKWGWlAsphF>8rUC+;ZDfa(=s@_F#i0yss$-8fvv#Vf@jNV{kuiVLgA~66J1A2@4RVJKUxH}IH-$JpaZ^g})pmKjjd>lmojtPqGOJ!"
    "xqXVV(I)s3f1HneH&<4|id_Zsqi~d9|fZw$~1nHWO$bgs-@JBFei6qb36Asxo<#s4;BRhd~d<sfnbhG0<$t^)oE$@gK%zO1xyELVB%s1k`FAKZeJ"
    "@WjCtPZ6s4%XC=!ChZ<C{I5t%jB|RQ$q0^0H^%ZVVCdNfJ9HPfzZdmWSrg_I({bPgptf%^rJMcpz`hTS7u<>s9rVvW-WSa`T|j+oGk",
    _LEVELS_OF_2_BITS,
    8,
)
IQ3_XXS = codebook(
    "c-l=-K?=h#3{ye}VW$qZd!FLL9+1HvWO^EVh1sdkoaHp#R7#szmgHo6m{j1}>~2z^o7e*jro|>W6f;suxGq5ThwwrH-tdy3S=*8VCKknJ;ww~xN="
    "C-Lt2kc1f`n?I#<sN&{qc;xi`rsIog^>xCi>0vO72GEj+P?`#G30*;dkafo0(MD70~26E5oy)Fh-PS2J_iYxE!Gh>5A3e2Aw8l#Lz*UZ2xyz&!sE"
    "!Xy7=t?heopubnm$;UMyR4j1Wf!f;*xLWT6+u!rw*Hy!tqyDZ17JdzPtf@!~_J7yrh&WtZi",
    np.array([4, 12, 20, 28, 36, 44, 52, 62], f32),
    4,
)
IQ3_S = codebook(
    "c-k#dK}rKb5Ud?m7(7iN59ovqtiR~U2pdlmS^v`sIn3TR;sZue5Z@6$Amj-`@D=vV+J}a&>aMEU{rNq)_mDQ1)6rXa`g-zl6)-xV9&D<-%sLtw(&"
    "E+K!8jAZAn=FIh`{BX?s3iZ9eL!0y{saQwa{i<M_rV8i?Gza!ZNf5Tx$=B>&%}&x2aFnb2>I1DZfG3@eJJ?w}Hf9jj>U<u}qaX$V(Q{%bJZi0qBw"
    "X8+P2=0D&xpG^*kpx3aC_+^woo1gDy;frCMb5s>PfCelExhl@Z5=M_J&lZwQK<TIaOt1Nd_t_Z4Nkqr(Irw~QLK*sjOloy2EUU#sN3YKfvLC9pG+"
    "yhGG#kO><KBF1{I~{B$E!8AqIlE}-BNQAl`R33C|JNFjj93D(#a!oZudm_a(c~OHe<Yb)Y4R?AVbTWv01QA~hX",
    np.arange(1, 16, 2, dtype=f32),
    4,
)
