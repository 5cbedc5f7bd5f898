// The device runtime: what kernels call and no cubin of theirs contains. `cargo regen` compiles it to sm_*.cubin;
// nv-driver loads it once per device and points the modules' undefined symbols at it.
//
// Its functions must not depend on a constant bank of their own: the banks are those of the kernel that calls. All
// that they share lies behind one symbol, `runtime_state`, which the driver resolves to memory that it also sees.
// driver/src/runtime/layout.rs says the same layout.

typedef unsigned int u32;
typedef unsigned long long u64;

// The first failure of a thread: an assertion, or free of what malloc did not give.
struct Failure {
    u32 claimed;
    u32 written;
    u32 count;
    u32 kind;
    u32 block[3];
    u32 thread[3];
    u32 line;
    u32 reserved;
    u64 address;
    char message[256];
    char file[256];
    char function[256];
};

struct State {
    // Bytes of the ring reserved by the GPU and taken by the CPU since the beginning. Multiples of 8.
    u64 head;
    u64 tail;
    // Bytes of the ring, a power of two.
    u64 ring_bytes;
    // Prints that did not fit.
    u64 dropped;
    // The heap's first unit, and a bit for each unit that is taken.
    u64 heap;
    u64 bitmap;
    u32 bitmap_words;
    // The lowest word of the bitmap that may have room.
    u32 first;
    u32 free_units;
    // Counts what was given back, so that a search knows when another one is worth it.
    u32 releases;
    Failure failure;
    u64 ring[1];
};

#define AT(member, offset) static_assert(__builtin_offsetof(State, member) == offset, #member)
AT(tail, 8);
AT(ring_bytes, 16);
AT(dropped, 24);
AT(heap, 32);
AT(bitmap, 40);
AT(bitmap_words, 48);
AT(free_units, 56);
AT(failure, 64);
AT(failure.written, 68);
AT(failure.count, 72);
AT(failure.kind, 76);
AT(failure.block, 80);
AT(failure.thread, 92);
AT(failure.line, 104);
AT(failure.address, 112);
AT(failure.message, 120);
AT(failure.file, 376);
AT(failure.function, 632);
AT(ring, 888);

// In front of every record; its first word is written at once with RESERVED, and without it when all is there.
struct Record {
    u32 bytes;
    u32 format_bytes;
    u32 argument_bytes;
    u32 string_bytes;
};

extern "C" {
extern __device__ State runtime_state;
}

#define RESERVED 0x80000000u
#define EXPORT extern "C" __device__ __noinline__
#define INLINE __device__ __forceinline__

// --- printf -------------------------------------------------------------------------------------------------------

INLINE u64 align8(u64 value) { return (value + 7) & ~7ull; }

INLINE bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Sets of letters: bit 0 is 'A'.
#define LETTER(c) (1ull << ((c) - 'A'))
#define INTEGERS (LETTER('d') | LETTER('i') | LETTER('u') | LETTER('o') | LETTER('x') | LETTER('X'))
#define REALS(c) (LETTER(c) | LETTER((c) - 'a' + 'A'))
// Eight bytes each.
#define LONG (REALS('f') | REALS('e') | REALS('g') | REALS('a') | LETTER('p') | LETTER('n'))

INLINE bool one_of(char c, u64 letters) {
    u32 index = static_cast<u32>(c) - 'A';
    return index < 64 && (letters >> index & 1) != 0;
}

// Counts bytes.
struct Counter {
    INLINE void byte(u64, char) {}
};

// Writes bytes at places of the ring.
struct Writer {
    u64 at;
    u64 mask;
    INLINE void byte(u64 offset, char value) {
        reinterpret_cast<char*>(runtime_state.ring)[(at + offset) & mask] = value;
    }
    INLINE void word(u64 offset, u32 value) {
        *reinterpret_cast<volatile u32*>(reinterpret_cast<char*>(runtime_state.ring) + ((at + offset) & mask)) = value;
    }
};

struct Sizes {
    u32 format;
    u32 arguments;
    u32 strings;
    u32 conversions;
};

// Walks a format with its arguments, which the compiler packed in their natural alignment, and hands the characters of
// every %s to `sink`. driver/src/runtime/format.rs reads formats by the same rules.
template <class Sink>
INLINE Sizes walk(const char* format, const char* arguments, Sink& sink) {
    Sizes sizes = {};
    u32 at = 0;
    u32 i = 0;
#pragma unroll 1
    while (format[i] != 0) {
        if (format[i++] != '%') continue;
        char c = format[i];
#pragma unroll 1
        while (c == '-' || c == '+' || c == ' ' || c == '#' || c == '0') c = format[++i];
        if (c == '*') {
            at += 4;
            sizes.conversions++;
            c = format[++i];
        } else {
#pragma unroll 1
            while (is_digit(c)) c = format[++i];
        }
        // No precision is the largest.
        u32 precision = ~0u;
        if (c == '.') {
            c = format[++i];
            precision = 0;
            if (c == '*') {
                int given = *reinterpret_cast<const int*>(arguments + at);
                at += 4;
                sizes.conversions++;
                precision = given < 0 ? ~0u : static_cast<u32>(given);
                c = format[++i];
            } else {
#pragma unroll 1
                while (is_digit(c)) {
                    precision = precision * 10 + (c - '0');
                    c = format[++i];
                }
            }
        }
        bool wide = false;
#pragma unroll 1
        while (c == 'h' || c == 'l' || c == 'j' || c == 'z' || c == 't' || c == 'L') {
            wide |= c != 'h' && c != 'L';
            c = format[++i];
        }
        if (c == 0) break;
        i++;
        // Compared one by one: a jump table would lie in a constant bank.
        if (c == 's') {
            at = (at + 7) & ~7u;
            const char* text = *reinterpret_cast<const char* const*>(arguments + at);
            at += 8;
            if (text != nullptr) {
#pragma unroll 1
                for (u32 k = 0; k < precision && text[k] != 0; k++) sink.byte(sizes.strings++, text[k]);
                sink.byte(sizes.strings++, 0);
            }
        } else if (one_of(c, INTEGERS)) {
            if (wide) at = (at + 7) & ~7u;
            at += wide ? 8 : 4;
        } else if (one_of(c, LONG)) {
            at = ((at + 7) & ~7u) + 8;
        } else if (c == 'c') {
            at += 4;
        } else {
            continue;
        }
        sizes.conversions++;
    }
    sizes.format = i + 1;
    sizes.arguments = at;
    return sizes;
}

EXPORT int runtime_vprintf(const char* format, const char* arguments) {
    if (format == nullptr) return -1;
    Counter counter;
    Sizes sizes = walk(format, arguments, counter);
    u64 format_at = sizeof(Record);
    u64 arguments_at = align8(format_at + sizes.format);
    u64 strings_at = align8(arguments_at + sizes.arguments);
    u64 bytes = align8(strings_at + sizes.strings);
    u64 ring_bytes = runtime_state.ring_bytes;
    u64 head = *reinterpret_cast<volatile u64*>(&runtime_state.head);
#pragma unroll 1
    for (;;) {
        u64 tail = *reinterpret_cast<volatile u64*>(&runtime_state.tail);
        if (head + bytes - tail > ring_bytes) {
            atomicAdd(&runtime_state.dropped, 1ull);
            return sizes.conversions;
        }
        u64 seen = atomicCAS(&runtime_state.head, head, head + bytes);
        if (seen == head) break;
        head = seen;
    }
    Writer writer = {head, ring_bytes - 1};
    writer.word(0, static_cast<u32>(bytes) | RESERVED);
    writer.word(4, sizes.format);
    writer.word(8, sizes.arguments);
    writer.word(12, sizes.strings);
#pragma unroll 1
    for (u32 i = 0; i < sizes.format; i++) writer.byte(format_at + i, format[i]);
#pragma unroll 1
    for (u32 i = 0; i < sizes.arguments; i += 4) {
        writer.word(arguments_at + i, *reinterpret_cast<const u32*>(arguments + i));
    }
    Writer strings = {head + strings_at, ring_bytes - 1};
    walk(format, arguments, strings);
    __threadfence_system();
    writer.word(0, static_cast<u32>(bytes));
    return sizes.conversions;
}

// --- Failures -----------------------------------------------------------------------------------------------------

INLINE void copy_text(char* to, const char* from, u32 size) {
    u32 i = 0;
    if (from != nullptr) {
#pragma unroll 1
        for (; i + 1 < size && from[i] != 0; i++) to[i] = from[i];
    }
    to[i] = 0;
}

// Ends the grid. The first caller leaves its failure for the CPU and traps; the others only end, because a trap of
// theirs would stop it.
INLINE void fail(u32 kind, const char* message, const char* file, u32 line, const char* function, u64 address) {
    Failure& failure = runtime_state.failure;
    atomicAdd(&failure.count, 1u);
    if (atomicCAS(&failure.claimed, 0u, 1u) == 0) {
        failure.kind = kind;
        failure.line = line;
        failure.address = address;
        failure.block[0] = blockIdx.x;
        failure.block[1] = blockIdx.y;
        failure.block[2] = blockIdx.z;
        failure.thread[0] = threadIdx.x;
        failure.thread[1] = threadIdx.y;
        failure.thread[2] = threadIdx.z;
        copy_text(failure.message, message, sizeof failure.message);
        copy_text(failure.file, file, sizeof failure.file);
        copy_text(failure.function, function, sizeof failure.function);
        __threadfence_system();
        *reinterpret_cast<volatile u32*>(&failure.written) = 1;
        __threadfence_system();
        asm volatile("trap;");
    }
    asm volatile("exit;");
}

EXPORT void runtime_assertfail(
    const char* message, const char* file, u32 line, const char* function, u64) {
    fail(1, message, file, line, function, 0);
}

// --- malloc and free ----------------------------------------------------------------------------------------------

#define UNIT 32u
#define HEADER 16u
#define MAGIC 0x6d616c63u
#define WORD 32u

// In front of every block.
struct Header {
    u32 magic;
    u32 units;
    u64 reserved;
};

// In global memory, which a plain atomicExch on a computed address would first have to find out.
INLINE u32 exchange(u32* at, u32 value) {
    u32 old;
    asm volatile("atom.global.exch.b32 %0, [%1], %2;" : "=r"(old) : "l"(__cvta_generic_to_global(at)), "r"(value) : "memory");
    return old;
}

INLINE u32* bitmap() {
    u32* words = reinterpret_cast<u32*>(runtime_state.bitmap);
    __builtin_assume(__isGlobal(words));
    return words;
}

INLINE u32 mask_of(u32 units) { return units >= WORD ? ~0u : (1u << units) - 1; }

// Takes `units` (fewer than a word's) neighbouring bits of one word; the first bit, or -1.
INLINE int take_in_word(u32* word, u32 units) {
    u32 taken = *reinterpret_cast<volatile u32*>(word);
#pragma unroll 1
    for (;;) {
        // A bit stays set in `starts` if it and the units-1 bits above are free.
        u32 starts = ~taken;
        u32 have = 1;
#pragma unroll 1
        while (have < units) {
            u32 step = min(have, units - have);
            starts &= starts >> step;
            have += step;
        }
        if (starts == 0) return -1;
        u32 bit = __ffs(starts) - 1;
        u32 seen = atomicCAS(word, taken, taken | mask_of(units) << bit);
        if (seen == taken) return bit;
        taken = seen;
    }
}

// Takes whole words for `units`, from `word` on; how many of them it got.
INLINE u32 take_words(u32* words, u32 word, u32 wanted) {
    u32 got = 0;
#pragma unroll 1
    while (got < wanted && atomicCAS(&words[word + got], 0u, ~0u) == 0) got++;
    return got;
}

// Gives them back, and lets searches begin there again: meanwhile others may have gone past the words.
INLINE void release_words(u32* words, u32 word, u32 count) {
#pragma unroll 1
    for (u32 i = 0; i < count; i++) exchange(&words[word + i], 0u);
    atomicMin(&runtime_state.first, word);
}

// Takes `units`, which are already counted as taken; the first unit, or -1.
INLINE int take(u32 units) {
    u32* words = bitmap();
    u32 count = runtime_state.bitmap_words;
#pragma unroll 1
    for (;;) {
        u32 releases = *reinterpret_cast<volatile u32*>(&runtime_state.releases);
        u32 first = *reinterpret_cast<volatile u32*>(&runtime_state.first);
        if (units < WORD) {
#pragma unroll 1
            for (u32 word = first; word < count; word++) {
                int bit = take_in_word(&words[word], units);
                if (bit >= 0) return word * WORD + bit;
                // A full word at the front need not be looked at again until something before it is given back.
                if (word == first && *reinterpret_cast<volatile u32*>(&words[word]) == ~0u &&
                    atomicCAS(&runtime_state.first, first, first + 1) == first) {
                    first++;
                    // Given back between the two: take the step back.
                    if (*reinterpret_cast<volatile u32*>(&words[word]) != ~0u) atomicMin(&runtime_state.first, word);
                }
            }
        } else {
            u32 wanted = (units + WORD - 1) / WORD;
#pragma unroll 1
            for (u32 word = first; word + wanted <= count;) {
                u32 got = take_words(words, word, wanted);
                if (got == wanted) return word * WORD;
                if (got > 0) {
                    release_words(words, word, got);
                    atomicAdd(&runtime_state.releases, 1u);
                }
                word += got + 1;
            }
        }
        if (*reinterpret_cast<volatile u32*>(&runtime_state.releases) == releases) return -1;
    }
}

EXPORT void* runtime_malloc(u64 bytes) {
    u32 total = runtime_state.bitmap_words * WORD;
    if (bytes == 0 || bytes / UNIT >= total) return nullptr;
    u32 units = static_cast<u32>((bytes + HEADER + UNIT - 1) / UNIT);
    // From a word on, whole words.
    if (units >= WORD) units = (units + WORD - 1) / WORD * WORD;
    u32 free = *reinterpret_cast<volatile u32*>(&runtime_state.free_units);
#pragma unroll 1
    for (;;) {
        if (free < units) return nullptr;
        u32 seen = atomicCAS(&runtime_state.free_units, free, free - units);
        if (seen == free) break;
        free = seen;
    }
    int unit = take(units);
    if (unit < 0) {
        atomicAdd(&runtime_state.free_units, units);
        return nullptr;
    }
    // What the last owner did to the block comes before what the next one does.
    __threadfence();
    Header* header = reinterpret_cast<Header*>(runtime_state.heap + static_cast<u64>(unit) * UNIT);
    header->units = units;
    *reinterpret_cast<volatile u32*>(&header->magic) = MAGIC;
    return header + 1;
}

EXPORT void runtime_free(void* pointer) {
    if (pointer == nullptr) return;
    u64 address = reinterpret_cast<u64>(pointer);
    u64 offset = address - HEADER - runtime_state.heap;
    u32* words = bitmap();
    u32 total = runtime_state.bitmap_words * WORD;
    Header* header = reinterpret_cast<Header*>(address - HEADER);
    // An address below the heap wraps to one far above it.
    bool valid = offset < static_cast<u64>(total) * UNIT && offset % UNIT == 0;
    if (!valid || exchange(&header->magic, 0u) != MAGIC) {
        fail(2, nullptr, nullptr, 0, nullptr, address);
        return;
    }
    u32 units = header->units;
    u32 unit = static_cast<u32>(offset / UNIT);
    u32 word = unit / WORD;
    __threadfence();
    if (units < WORD) {
        atomicAnd(&words[word], ~(mask_of(units) << unit % WORD));
        atomicMin(&runtime_state.first, word);
    } else {
        release_words(words, word, units / WORD);
    }
    atomicAdd(&runtime_state.free_units, units);
    atomicAdd(&runtime_state.releases, 1u);
}
