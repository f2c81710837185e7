/* Read a bump file (weights.bump) in C99, with the standard library alone: check it, and list its tensors.
 *
 *     cc -std=c99 -o bump bump.c
 *     ./bump FILE KV_HEADS INTERMEDIATE      two numbers that stand in config.json and not in the file
 *
 * One line for the header, then one for each tensor: name, type, offset, bytes, SHA-256 of its bytes. A file may lie:
 * every length is held against the bytes that are left. Not checked here: config.json.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const TYPES[] = {"FP32", "BF16", "FP16", "INT8", "INT4", "Q4_0", "Q4_K", "Q6_K", "Q8_0", "Q8_K"};
static const unsigned BLOCK[] = {1, 1, 1, 0, 0, 32, 256, 256, 32, 256}; /* weights; 0: nobody says */
static const unsigned BYTES[] = {4, 2, 2, 0, 0, 18, 144, 210, 34, 292};

static unsigned char *bytes; /* the whole file */
static size_t size, at;      /* how long it is, and which byte comes next */
static uint32_t count, used; /* how many types there are, and how many were taken */

static void fail(const char *what, const char *why) {
    fprintf(stderr, "%s, before byte %zu: %s\n", what, at, why);
    exit(1);
}

static void load(const char *path) {
    FILE *file = fopen(path, "rb");
    size_t room = 0;
    if (!file) fail(path, "cannot be opened");
    while (size == room) { /* full, so there may be more */
        room += room + 65536;
        if (!(bytes = realloc(bytes, room))) fail(path, "does not fit in memory");
        size += fread(bytes + size, 1, room - size, file);
    }
    if (ferror(file) || fclose(file)) fail(path, "cannot be read");
}

static const unsigned char *take(size_t n, const char *field) {
    if (n > size - at) fail(field, "the file ends too early");
    at += n;
    return bytes + at - n;
}

/* The first byte counts least. */
static uint64_t number(size_t n, const char *field) {
    const unsigned char *p = take(n, field);
    uint64_t x = 0;
    while (n--) x = x << 8 | p[n];
    return x;
}

/* ---- SHA-256, FIPS 180-4 ---- */

static uint32_t state[8];

/* SHA-256's constants: the first 32 bits behind the point of a prime's square or cube root, found bit by bit. */
static uint32_t root(unsigned prime, int degree) {
    uint64_t low = 0; /* the root times 2^32 */
    for (int bit = 37; bit >= 0; bit--) {
        uint64_t x = low | (uint64_t)1 << bit;
        long double r = (long double)x / 4294967296.0L, power = degree == 2 ? r * r : r * r * r;
        if (power <= (long double)prime) low = x;
    }
    return (uint32_t)low;
}

static uint32_t turn(uint32_t x, int n) { return x >> n | x << (32 - n); }

static void block(const unsigned char *p, const uint32_t *k) {
    uint32_t w[64], s[8];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 | (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
    for (int i = 16; i < 64; i++)
        w[i] = w[i - 16] + w[i - 7] + (turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ w[i - 15] >> 3) +
               (turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ w[i - 2] >> 10);
    memcpy(s, state, sizeof s);
    for (int i = 0; i < 64; i++) {
        uint32_t a = s[7] + (turn(s[4], 6) ^ turn(s[4], 11) ^ turn(s[4], 25)) + k[i] + w[i];
        uint32_t b = turn(s[0], 2) ^ turn(s[0], 13) ^ turn(s[0], 22);
        a += (s[4] & s[5]) ^ (~s[4] & s[6]);
        b += (s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]);
        memmove(s + 1, s, 7 * sizeof *s);
        s[4] += a;
        s[0] = a + b;
    }
    for (int i = 0; i < 8; i++) state[i] += s[i];
}

static void sha256(const unsigned char *data, size_t n, unsigned char *out) {
    uint32_t k[64];
    unsigned char last[128] = {0};
    int primes = 0;
    for (unsigned p = 2; primes < 64; p++) {
        unsigned d = 2;
        while (d * d <= p && p % d) d++;
        if (d * d <= p) continue;
        if (primes < 8) state[primes] = root(p, 2);
        k[primes++] = root(p, 3);
    }
    size_t whole = n / 64 * 64, rest = n - whole, end = rest < 56 ? 64 : 128;
    for (size_t i = 0; i < whole; i += 64) block(data + i, k);
    memcpy(last, data + whole, rest);
    last[rest] = 0x80;
    for (int i = 0; i < 8; i++) last[end - 1 - i] = (unsigned char)((uint64_t)n * 8 >> 8 * i);
    for (size_t i = 0; i < end; i += 64) block(last + i, k);
    for (int i = 0; i < 32; i++) out[i] = (unsigned char)(state[i / 4] >> (24 - 8 * (i % 4)));
}

/* ---- the tensors ---- */

static void padding(void) {
    while (at % 64)
        if (*take(1, "padding")) fail("padding", "expected zeros");
}

/* One tensor of rows x width weights, or with a width of 0 a vector; layer -1: it belongs to none. */
static void tensor(int64_t layer, const char *name, uint64_t rows, uint64_t width, const unsigned char *types) {
    unsigned char digest[32];
    if (used == count) fail(name, "the table of types is too short");
    unsigned type = types[used++];
    if (type > 9 || !BLOCK[type]) fail(name, "of a type without a block");
    if (width == 0 && type) fail(name, "norms and biases are FP32");
    uint64_t row = width == 0 ? rows : width; /* a vector is one row */
    if (row % BLOCK[type]) fail(name, "rows are no whole number of blocks");
    uint64_t each = row / BLOCK[type] * BYTES[type], n = width == 0 ? 1 : rows;
    padding();
    size_t start = at;
    if (each && n > (size - at) / each) fail(name, "outside the file");
    sha256(take((size_t)(each * n), name), (size_t)(each * n), digest);
    if (layer >= 0) printf("layers.%lld.", (long long)layer);
    printf("%s  %s  %zu  %zu  ", name, TYPES[type], start, at - start);
    for (int i = 0; i < 32; i++) printf("%02x", digest[i]);
    puts("");
}

int main(int argc, char **argv) {
    if (argc != 4) return fprintf(stderr, "usage: %s FILE KV_HEADS INTERMEDIATE\n", argv[0]), 2;
    uint64_t kv = strtoul(argv[2], NULL, 10), inner = strtoul(argv[3], NULL, 10), h[8], dims[3];
    unsigned char found[32];
    load(argv[1]);

    /* 1. header */
    if (memcmp(take(8, "magic"), "BUMPWGT3", 8)) fail("magic", "this is not a bump file");
    /* version, model_type, layers, vocab, embed, context, heads, head_dim */
    for (int i = 0; i < 8; i++) h[i] = number(4, "header");
    if (h[0] != 3) fail("version", "expected 3");
    if (h[1] != 1 && h[1] != 2) fail("model_type", "unknown");
    for (int i = 2; i < 8; i++) if (!h[i]) fail("header", "a size is 0");
    if (h[6] * h[7] != h[4]) fail("head_dim", "heads do not make up embed_dim");
    dims[0] = h[4], dims[1] = h[7], dims[2] = h[5];
    for (int i = 0; i < 3; i++)
        if (number(8, "aligned dims") != (dims[i] + 15) / 16 * 16) fail("aligned dims", "not rounded up to 16 floats");
    const unsigned char *checksum = take(32, "checksum"), *reserved = take(32, "reserved");
    for (int i = 0; i < 32; i++) if (reserved[i]) fail("reserved", "expected zeros");
    sha256(bytes + at, size - at, found);
    if (memcmp(found, checksum, 32)) fail("checksum", "a byte changed");
    printf("model_type %u, %u layers, vocab %u, embed %u, context %u, heads %u x %u\n", (unsigned)h[1], (unsigned)h[2],
           (unsigned)h[3], (unsigned)h[4], (unsigned)h[5], (unsigned)h[6], (unsigned)h[7]);

    /* 2. types */
    count = (uint32_t)number(4, "count");
    const unsigned char *t = take(count, "types");

    /* 3. tensors */
    uint64_t e = h[4], wide = kv * h[7];
    if (!kv || !inner || wide > size || inner > size) fail("arguments", "no such sizes fit this file");
    tensor(-1, "token_embd", h[3], e, t);
    if (h[1] == 2) tensor(-1, "position_embd", h[5], e, t);
    for (int64_t i = 0; i < (int64_t)h[2]; i++) {
        if (h[1] == 1) {
            tensor(i, "ln1_gamma", e, 0, t), tensor(i, "ln2_gamma", e, 0, t);
            tensor(i, "Wq", e, e, t), tensor(i, "bq", e, 0, t);
            tensor(i, "Wk", wide, e, t), tensor(i, "bk", wide, 0, t);
            tensor(i, "Wv", wide, e, t), tensor(i, "bv", wide, 0, t);
            tensor(i, "Wo", e, e, t), tensor(i, "bo", e, 0, t);
            tensor(i, "W_gate", inner, e, t), tensor(i, "W_up", inner, e, t), tensor(i, "b1", 2 * inner, 0, t);
        } else {
            tensor(i, "ln1_gamma", e, 0, t), tensor(i, "ln1_beta", e, 0, t);
            tensor(i, "ln2_gamma", e, 0, t), tensor(i, "ln2_beta", e, 0, t);
            tensor(i, "Wqkv", 3 * e, e, t), tensor(i, "bqkv", 3 * e, 0, t);
            tensor(i, "Wo", e, e, t), tensor(i, "bo", e, 0, t);
            tensor(i, "W_up", inner, e, t), tensor(i, "b1", inner, 0, t);
        }
        tensor(i, "W_down", e, inner, t), tensor(i, "b2", e, 0, t);
    }
    tensor(-1, "output_norm", e, 0, t);
    if (h[1] == 2) tensor(-1, "output_norm_beta", e, 0, t);
    if (used < count) tensor(-1, "output", h[3], e, t);
    padding();
    if (used != count || at != size) fail("end", "something is left over");
    free(bytes);
    return 0;
}
