// SPDX-License-Identifier: Apache-2.0
// Another project's code for `normbench gate --function`, in C++: containers, virtual functions, exceptions; functions in a namespace,
// found by the names that C++ gives them, and one pair as extern "C". kernels/function.h is not needed.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#define EXPORT __attribute__((visibility("default")))

namespace {
struct Splitter {
    virtual ~Splitter() = default;
    virtual bool splits(char c) const = 0;
};
struct Spaces final : Splitter {
    bool splits(char c) const override { return c == ' '; }
};
struct Book {
    std::string text;
    std::unique_ptr<Splitter> splitter = std::make_unique<Spaces>();
    std::map<std::string, int> counts;
    std::vector<std::int32_t> answer;
};
void count_words(Book &book) {
    book.counts.clear();
    std::string word;
    for (char c : book.text) {
        if (!book.splitter->splits(c)) {
            word += c;
            continue;
        }
        book.counts[word]++;
        word.clear();
    }
    book.answer.clear();
    for (const auto &entry : book.counts) book.answer.push_back(entry.second);
    std::sort(book.answer.begin(), book.answer.end());
}
} // namespace

namespace text::words {
EXPORT void *count_setup() {
    auto *book = new Book;
    std::uint32_t state = 1;
    for (int i = 0; i < 20; i++) {
        state = state * 1664525u + 1013904223u;
        book->text += "word number " + std::to_string(state >> 26) + ' ';
    }
    return book;
}
EXPORT void count(void *state) {
    auto &book = *static_cast<Book *>(state);
    count_words(book);
#ifdef THROWS
    throw std::runtime_error("no more words");
#endif
}
EXPORT const void *count_bytes(const void *state, std::size_t *n) {
    const auto &answer = static_cast<const Book *>(state)->answer;
    *n = answer.size() * sizeof answer[0];
    return answer.data();
}
EXPORT void count_teardown(void *state) { delete static_cast<Book *>(state); }
EXPORT int is_right(const void *state, const void *other) {
    return static_cast<const Book *>(state)->answer != static_cast<const Book *>(other)->answer;
}
} // namespace text::words

extern "C" EXPORT void *sum_setup() { return new std::vector<double>(500, 0.5); }
extern "C" EXPORT void sum(void *state) {
    auto &v = *static_cast<std::vector<double> *>(state);
    v[0] = 0;
    for (std::size_t i = 1; i < v.size(); i++) v[0] += v[i];
}
extern "C" EXPORT const void *sum_bytes(const void *state, std::size_t *n) {
    *n = sizeof(double);
    return static_cast<const std::vector<double> *>(state)->data();
}
