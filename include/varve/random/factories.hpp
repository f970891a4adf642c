// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/composite/ranges.hpp>
#include <varve/dispatch/integer_range.hpp>
#include <varve/op/randn.hpp>

/// @file
/// Random tensors of given sizes. All functions draw from the thread's generator, or from a generator that is passed;
/// then only that one advances. The numbers depend only on the generator's state, not on the SIMD width or the number
/// of threads. Traced functions may draw only from the thread's generator; passing a generator of their own is refused.
/// (The functions are templates so that unused ones cost nothing.)
namespace varve {

/// The generator that a call draws from: the thread's by default, or another one (`generator g{7}; rand({2}, g)`).
class generator_ref {
public:
  constexpr generator_ref() = default;
  constexpr generator_ref(generator& g) : other_(&g) {} // NOLINT(google-explicit-constructor)
  constexpr generator* other() const { return other_; }

private:
  generator* other_ = nullptr;
};

namespace detail {
/// Guard that sets the name which error messages use in place of the random operator that a function calls.
class random_caller_guard {
public:
  explicit random_caller_guard(char const* name) : before_(random_caller) {
    if (!before_) random_caller = name;
  }
  random_caller_guard(random_caller_guard const&) = delete;
  random_caller_guard& operator=(random_caller_guard const&) = delete;
  ~random_caller_guard() { random_caller = before_; }

private:
  char const* before_;
};
/// Returns `f()`, whose random operators draw from `g`. Error messages name `caller` unless it is null.
template <class F>
auto drawn_from(generator_ref g, F const& f, char const* caller = nullptr) {
  random_caller_guard const named(caller);
  if (!g.other() || g.other() == &default_generator) return f();
  struct lend {
    generator &of, thread, from;
    bool again;
    explicit lend(generator& o)
        : of(o), thread(default_generator), from(o), again(lent_states_guard::is_drawn_again(from)) {
      set(from);
    }
    lend(lend const&) = delete;
    lend& operator=(lend const&) = delete;
    ~lend() {
      if (!again) of = default_generator;
      set(thread);
    }
    static void set(generator const& to) {
      default_generator = to;
      ++generator_sets; // lets a trace detect and refuse the exchange
    }
  } const now(*g.other());
  return f();
}
constexpr dims fact_of(dtype t) { return dims{static_cast<index_t>(t)}; }
constexpr void require_floating(char const* op, dtype t) {
  if (!is_floating(t)) refuse::dtype_is_not_supported(op, name(t));
}
/// Refuses a dtype that cannot represent every integer in [low, high].
constexpr void require_held(char const* op, dtype t, std::int64_t low, std::int64_t high) {
  int const digits = t == dtype::float64 ? 53 : t == dtype::float16 ? 11 : t == dtype::bfloat16 ? 8 : 24;
  std::int64_t const real = INT64_C(1) << digits;
  std::int64_t const least = is_floating(t) ? -real : t == dtype::bool_ ? 0 : least_of(t);
  std::int64_t const most = is_floating(t) ? real : t == dtype::bool_ ? 1 : greatest_of(t);
  if (low < least || high > most) refuse::argument_is_invalid(op, "the dtype does not hold all numbers of the range");
}
/// Base of the factories of random numbers: `Rules::fill<T>(attributes, sizes, data, generator)` fills the elements and
/// returns how far the generator's offset advances.
template <class Tag>
struct random_factory : factory {
  static constexpr op_kind kind = op_kind::random;
  template <class A, class R = rules<Tag>>
  static tensor make_by(A const& at) {
    auto const type = static_cast<dtype>(at[1][0]);
    if (is_compact(type)) return made_compact<R>(at);
    tensor r = fresh(at[0], type);
    generator& g = default_generator;
    on_dtype(type, Tag::op_name, [&]<class T>() { g.offset += R::fill(at, r.sizes(), static_cast<T*>(r.raw()), g); });
    return r;
  }
};
} // namespace detail

/// Operator: uniform numbers in [0, 1). Attributes {shape, {dtype}}.
inline constexpr struct rand_t {
  static constexpr auto op_name = "rand";
} rand_op{};
template <>
struct rules<rand_t> : detail::random_factory<rand_t> {
  template <class T>
  static std::uint64_t fill(attributes const&, dims const& sizes, T* to, generator const& g) {
    if constexpr (std::is_floating_point_v<T>) return kernel::fill_uniform(numel(sizes), to, g.seed, g.offset);
    else refuse::dtype_is_not_supported("rand", name(dtype_of_type<T>()));
  }
  /// Rounds down to multiples of half of epsilon, the step of the other dtypes too. Rounding to nearest would turn some
  /// numbers into 1.
  template <class A>
  static tensor make_coarse(A at) {
    auto const type = static_cast<dtype>(at[1][0]);
    at.fact[1] = detail::fact_of(dtype::float32);
    tensor const fine = make_by(at);
    float const steps = type == dtype::float16 ? 0x1p11f : 0x1p8f;
    float* const x = fine.data<float>();
    for (index_t k = 0; k < fine.numel(); ++k) x[k] = std::floor(x[k] * steps) / steps;
    return detail::converted(fine, type);
  }
  template <class A>
  static tensor make(A const& at) {
    auto const type = static_cast<dtype>(at[1][0]);
    detail::require_floating("rand", type);
    return is_compact(type) ? make_coarse(at) : make_by(at);
  }
};

/// Operator: integers in [low, high). Attributes {shape, {dtype}, {low, high}}; each bound is stored as its upper and
/// lower 32 bits, because attributes cannot hold numbers of 2^62 and above.
inline constexpr struct randint_t {
  static constexpr auto op_name = "randint";
} randint_op{};
template <>
struct rules<randint_t> : detail::random_factory<randint_t> {
  static constexpr auto schema = "(int[] size, ScalarType dtype, int[] range) -> Tensor";
  static constexpr attributes checked(attributes const& at, meta const* in) {
    attributes const r = factory::checked(at, in);
    if (at[2].n != 4 || !(joined(at[2], 0) < joined(at[2], 2)))
      refuse::argument_is_invalid("randint", "the range [low, high) must not be empty");
    return r;
  }
  static constexpr dims halves(std::int64_t low, std::int64_t high) {
    return dims{low >> 32, low & INT64_C(0xFFFFFFFF), high >> 32, high & INT64_C(0xFFFFFFFF)};
  }
  template <class T>
  static std::uint64_t fill(attributes const& at, dims const& sizes, T* to, generator const& g) {
    return kernel::fill_integers(numel(sizes), to, joined(at[2], 0), joined(at[2], 2), g.seed, g.offset);
  }
  template <class A>
  static tensor make(A const& at) {
    return make_by(at);
  }

private:
  static constexpr std::int64_t joined(dims const& d, int k) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(index_t(d[k])) << 32 |
                                     static_cast<std::uint64_t>(index_t(d[k + 1])));
  }
};

/// Operator: permutations of 0, 1, ..., n - 1 along the last dimension, whose size is n. Attributes {shape, {dtype}}.
inline constexpr struct randperm_t {
  static constexpr auto op_name = "randperm";
} randperm_op{};
template <>
struct rules<randperm_t> : detail::random_factory<randperm_t> {
  static constexpr attributes checked(attributes const& at, meta const* in) {
    attributes const r = factory::checked(at, in);
    if (at[0].n < 1) refuse::argument_is_invalid("randperm", "there is a dimension at least");
    return r;
  }
  template <class T>
  static std::uint64_t fill(attributes const&, dims const& sizes, T* to, generator const& g) {
    index_t const n = sizes[sizes.n - 1], all = numel(sizes);
    std::uint64_t used = 0;
    for (index_t begin = 0; begin < all; begin += n)
      used += kernel::fill_permutation(n, to + begin, g.seed, g.offset + used);
    return used;
  }
  template <class A>
  static tensor make(A const& at) {
    return make_by(at);
  }
};

/// Returns a tensor of standard normal numbers drawn from a generator (`torch.randn`).
template <class = void>
tensor randn(dims const& sizes, generator& g, dtype type = get_default_dtype()) {
  return detail::drawn_from(g, [&]() -> tensor { return randn(sizes, type); });
}
/// Returns a tensor of uniform numbers in [0, 1) (`torch.rand`). Throws `dtype_error` if the dtype is not
/// floating-point.
template <class = void>
tensor rand(dims const& sizes, dtype type = get_default_dtype()) {
  return detail::create(bind<rand_t>(sizes, detail::fact_of(type)));
}
template <class = void, detail::one_size N, class... A>
  requires detail::listed_sizes<A...>
tensor rand(N n, A... more) {
  detail::sizes_and_dtype const all(n, more...);
  return rand(all.sizes, all.type);
}
template <class = void>
tensor rand(dims const& sizes, generator& g, dtype type = get_default_dtype()) {
  return detail::drawn_from(g, [&]() -> tensor { return rand(sizes, type); });
}
/// Returns a tensor of integers in [low, high) (`torch.randint`). Throws `value_error` if the range is empty or the
/// dtype cannot represent all of it.
template <class = void>
tensor randint(std::int64_t low, std::int64_t high, dims const& sizes, dtype type = dtype::int64) {
  if (!(low < high)) refuse::argument_is_invalid("randint", "the range [low, high) must not be empty");
  detail::require_held("randint", type, low, high - 1);
  return detail::create(bind<randint_t>(sizes, detail::fact_of(type), rules<randint_t>::halves(low, high)));
}
template <class = void>
tensor randint(std::int64_t low, std::int64_t high, dims const& sizes, generator& g, dtype type = dtype::int64) {
  return detail::drawn_from(g, [&]() -> tensor { return randint(low, high, sizes, type); });
}
/// Returns 0, 1, ..., n - 1 in random order (`torch.randperm`). Takes O(n) sequential steps.
template <class = void>
tensor randperm(index_t n, dtype type = dtype::int64) {
  if (n < 0) refuse::argument_is_invalid("randperm", "n must not be negative");
  if (n > 0) detail::require_held("randperm", type, 0, n - 1);
  return detail::create(bind<randperm_t>(dims{n}, detail::fact_of(type)));
}
template <class = void>
tensor randperm(index_t n, generator& g, dtype type = dtype::int64) {
  return detail::drawn_from(g, [&]() -> tensor { return randperm(n, type); });
}

/// Returns a tensor of uniform numbers in [0, 1) with the sizes and dtype of x. `randn_like` and `randint_like` do the
/// same with normal numbers and with integers.
template <class T>
  requires std::is_same_v<T, tensor>
tensor rand_like(T const& x, generator_ref g = {}) {
  return detail::drawn_from(g, [&]() -> tensor { return rand(x.sizes(), x.dtype()); });
}
template <class T>
  requires std::is_same_v<T, tensor>
tensor randn_like(T const& x, generator_ref g = {}) {
  return detail::drawn_from(g, [&]() -> tensor { return randn(x.sizes(), x.dtype()); });
}
template <class T>
  requires std::is_same_v<T, tensor>
tensor randint_like(T const& x, std::int64_t low, std::int64_t high, generator_ref g = {}) {
  return detail::drawn_from(g, [&]() -> tensor { return randint(low, high, x.sizes(), x.dtype()); });
}

/// Returns a static array of the numbers that `rand` gives for tensors, and advances the generator. Example:
/// `generator g{42}; auto w = rand<float, 2, 3>(g);`
template <class T, index_t... D>
constexpr array<T, D...> rand(generator& g) {
  array<T, D...> r{};
  g.offset += kernel::fill_uniform(r.size(), r.data, g.seed, g.offset);
  return r;
}
template <class T, index_t... D>
constexpr array<T, D...> randint(std::int64_t low, std::int64_t high, generator& g) {
  if (!(low < high)) refuse::argument_is_invalid("randint", "the range [low, high) must not be empty");
  array<T, D...> r{};
  g.offset += kernel::fill_integers(r.size(), r.data, low, high, g.seed, g.offset);
  return r;
}
template <class T, index_t N>
constexpr array<T, N> randperm(generator& g) {
  array<T, N> r{};
  g.offset += kernel::fill_permutation(N, r.data, g.seed, g.offset);
  return r;
}

} // namespace varve
