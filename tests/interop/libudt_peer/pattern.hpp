// What is sent, and how it is known again: words of xorshift64* and a 64-bit FNV-1a over words.
//
// Both are defined over 8-byte little-endian words, so that the Rust twin gives the same figures.
#pragma once

#include <cstdint>
#include <cstring>

// Words from a seed: xorshift64* (Vigna, "An experimental exploration of Marsaglia's xorshift
// generators", 2016), bytes of each word from the lowest up.
class Pattern {
public:
    explicit Pattern(uint64_t seed) : state_(seed ? seed : 0x9E3779B97F4A7C15ULL) {}

    void fill(char* into, size_t length)
    {
        while (length > 0 && left_ > 0) {
            *into++ = static_cast<char>(word_ >> (8 * (8 - left_--)));
            --length;
        }
        for (; length >= 8; into += 8, length -= 8) {
            const uint64_t word = next();
            memcpy(into, &word, 8);
        }
        if (length > 0) {
            word_ = next();
            for (left_ = 8; length > 0; --length)
                *into++ = static_cast<char>(word_ >> (8 * (8 - left_--)));
        }
    }

private:
    uint64_t next()
    {
        state_ ^= state_ >> 12;
        state_ ^= state_ << 25;
        state_ ^= state_ >> 27;
        return state_ * 0x2545F4914F6CDD1DULL;
    }

    uint64_t state_;
    uint64_t word_ = 0;
    int left_ = 0; // bytes of word_ not given out yet
};

// FNV-1a with words instead of bytes; the last one is padded with zeros.
class Hash {
public:
    void add(const char* bytes, size_t length)
    {
        while (length > 0 && held_ > 0) {
            hold(*bytes++);
            --length;
        }
        for (; length >= 8; bytes += 8, length -= 8) {
            uint64_t word;
            memcpy(&word, bytes, 8);
            mix(word);
        }
        for (; length > 0; --length)
            hold(*bytes++);
    }

    uint64_t value() const
    {
        Hash end = *this;
        if (end.held_ > 0)
            end.mix(end.word_);
        return end.state_;
    }

private:
    void hold(char byte)
    {
        word_ |= static_cast<uint64_t>(static_cast<unsigned char>(byte)) << (8 * held_++);
        if (held_ == 8) {
            mix(word_);
            word_ = 0;
            held_ = 0;
        }
    }

    void mix(uint64_t word) { state_ = (state_ ^ word) * 0x100000001B3ULL; }

    uint64_t state_ = 0xCBF29CE484222325ULL;
    uint64_t word_ = 0;
    int held_ = 0;
};
