/* Read a GGUF-lite file in C99, with the standard library alone.
 *
 *     cc -std=c99 -o gguf_lite gguf_lite.c
 *     ./gguf_lite FILE             the metadata, then one line for each tensor: name, dims, dtype
 *     ./gguf_lite FILE TENSOR      the weights of that tensor as float32, one on each line
 *
 * A file may lie: every length is checked against the bytes that are left before anything is read. Not checked here:
 * that text is UTF-8, that names and keys are unique, that lines are key=value, and that tensors do not lie over each
 * other. The metadata may say how dims and groups are meant; what this reader does not know, it refuses.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { F32, F16, Q8_PER_CHANNEL, Q4_PER_GROUP_64 };
static const char *const DTYPES[] = {"F32", "F16", "Q8_PER_CHANNEL", "Q4_PER_GROUP_64"};

struct tensor {
    const unsigned char *name;
    size_t name_len;
    unsigned n_dims, dims[255], dtype;
    uint64_t offset, n_weights, n_scales, n_bytes;
};

static unsigned char *bytes; /* the whole file */
static size_t size, at;      /* how long it is, and which byte comes next */

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

/* The first byte counts least. Put together byte by byte, the machine's own order does not matter. */
static uint64_t little_endian(const unsigned char *p, size_t n) {
    uint64_t x = 0;
    while (n--) x = x << 8 | p[n];
    return x;
}

static uint64_t u64(const char *field) { return little_endian(take(8, field), 8); }
static uint32_t u32(const char *field) { return (uint32_t)little_endian(take(4, field), 4); }
static unsigned u16(const char *field) { return (unsigned)little_endian(take(2, field), 2); }
static unsigned u8(const char *field) { return *take(1, field); }

static struct tensor descriptor(void) {
    const uint64_t most = ((uint64_t)1 << 60) - 1; /* weights, so that no size overflows 64 bits */
    struct tensor t = {0};
    int empty = 0;
    if (!(t.name_len = u16("name_len"))) fail("name_len", "a name has at least one byte");
    t.name = take(t.name_len, "name");
    t.n_dims = u8("n_dims");
    t.n_weights = 1;
    for (unsigned d = 0; d < t.n_dims; d++) {
        if (!(t.dims[d] = u32("dims"))) empty = 1;
        else if (t.n_weights > most / t.dims[d]) fail("dims", "they multiply to more than any file holds");
        else t.n_weights *= t.dims[d];
    }
    if (empty) t.n_weights = 0;
    if ((t.dtype = u8("dtype")) > Q4_PER_GROUP_64) fail("dtype", "unknown");
    if (t.dtype >= Q8_PER_CHANNEL && t.n_dims != 2) fail("n_dims", "a quantized tensor has two");
    if (t.dtype == Q4_PER_GROUP_64 && t.dims[1] % 64) fail("dims", "rows are not a multiple of 64");
    t.offset = u64("offset");
    if (t.dtype == Q8_PER_CHANNEL) t.n_scales = t.dims[0];
    if (t.dtype == Q4_PER_GROUP_64) t.n_scales = t.n_weights / 64;
    const uint64_t value_bytes[] = {4 * t.n_weights, 2 * t.n_weights, t.n_weights, t.n_weights / 2};
    t.n_bytes = 2 * t.n_scales + value_bytes[t.dtype];
    return t;
}

/* A line of metadata that begins with this key must go on with this value. */
static void must_say(const unsigned char *text, size_t n, const char *key, const char *value) {
    size_t key_len = strlen(key), value_len = strlen(value);
    for (size_t start = 0, end; start < n; start = end + 1) {
        for (end = start; end < n && text[end] != '\n';) end++;
        if (end - start < key_len || memcmp(text + start, key, key_len)) continue;
        if (end - start != key_len + value_len || memcmp(text + start + key_len, value, value_len))
            fail("metadata", "dims_order is not out,in, or group_size is not 64");
    }
}

static float f32(const unsigned char *p) {
    union { uint32_t bits; float x; } word = {(uint32_t)little_endian(p, 4)};
    return word.x;
}

/* 1 bit of sign, 5 of exponent, 10 of mantissa. A subnormal (exponent 0) has no leading one. */
static float f16(const unsigned char *p) {
    unsigned bits = (unsigned)little_endian(p, 2), exponent = bits >> 10 & 31, mantissa = bits & 1023;
    float x = (float)(exponent ? 1024 + mantissa : mantissa) / (1 << 24);
    for (unsigned e = 1; e < exponent; e++) x *= 2;
    if (exponent == 31) x = mantissa ? NAN : INFINITY;
    return bits >> 15 ? -x : x;
}

static int twos_complement(int x, int n_bits) { return x < 1 << (n_bits - 1) ? x : x - (1 << n_bits); }

static float weight(const struct tensor *t, const unsigned char *scales, uint64_t i) {
    const unsigned char *values = scales + 2 * t->n_scales;
    if (t->dtype == F32) return f32(values + 4 * i);
    if (t->dtype == F16) return f16(values + 2 * i);
    if (t->dtype == Q8_PER_CHANNEL) return f16(scales + 2 * (i / t->dims[1])) * (float)twos_complement(values[i], 8);
    int nibble = i % 2 ? values[i / 2] >> 4 : values[i / 2] & 15; /* the even index is the low one */
    return f16(scales + 2 * (i / 64)) * (float)twos_complement(nibble, 4);
}

static void print_weights(const struct tensor *t, const unsigned char *data) {
    for (uint64_t s = 0; s < t->n_scales; s++)
        if (!isfinite(f16(data + 2 * s))) fail("scales", "one is not finite");
    for (uint64_t i = 0; i < t->n_weights; i++) printf("%.9g\n", (double)weight(t, data, i));
}

static void print_line(const struct tensor *t) {
    fwrite(t->name, 1, t->name_len, stdout);
    printf("  [");
    for (unsigned d = 0; d < t->n_dims; d++) printf(d ? ", %u" : "%u", t->dims[d]);
    printf("]  %s\n", DTYPES[t->dtype]);
}

int main(int argc, char **argv) {
    int found = argc == 2;
    if (argc < 2 || argc > 3) return fprintf(stderr, "usage: %s FILE [TENSOR]\n", argv[0]), 2;
    load(argv[1]);

    /* 1. header */
    if (u32("magic") != 0x474C4654) fail("magic", "this is not a GGUF-lite file");
    if (u32("version") != 1) fail("version", "expected 1");
    uint32_t n_tensors = u32("n_tensors"), metadata_len = u32("metadata_len");

    /* 2. metadata */
    const unsigned char *metadata = take(metadata_len, "metadata");
    must_say(metadata, metadata_len, "dims_order=", "out,in");
    must_say(metadata, metadata_len, "group_size=", "64");
    if (argc == 2) fwrite(metadata, 1, metadata_len, stdout), puts("");

    /* 3. descriptors: once to find where the data begins, once to use them */
    size_t first = at;
    for (uint32_t i = 0; i < n_tensors; i++) descriptor();
    size_t data = at;
    at = first;
    for (uint32_t i = 0; i < n_tensors; i++) {
        struct tensor t = descriptor();
        if (t.offset > size - data || t.n_bytes > size - data - t.offset) fail("offset", "outside the file");
        if (argc == 2) print_line(&t);
        else if (t.name_len == strlen(argv[2]) && !memcmp(t.name, argv[2], t.name_len)) {
            print_weights(&t, bytes + data + t.offset); /* 4. data */
            found = 1;
        }
    }
    if (!found) fail(argv[2], "no such tensor");
    free(bytes);
    return 0;
}
