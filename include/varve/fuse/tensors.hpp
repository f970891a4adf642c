// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/core/message.hpp>
#include <varve/fuse/fuse.hpp>
#include <varve/interpreter/grad_mode.hpp>
#include <varve/trace/trace.hpp>

/// @file
/// Fused functions of tensors: dtypes and sizes are declared, and checked once per call.
///
/// A fused function reads memory directly. The memory may belong to variables, to `tensor_ref`s, or, with declared
/// specs, to tensors. Mdspans and Eigen matrices count as `tensor_ref`s; `value/memory_view.hpp` recognizes them by
/// their interface. For tensors each call checks dtype, sizes and backend. It also checks that no transform or autograd
/// would miss the call, and that no result overlaps memory that is read.
namespace varve {
namespace fusion {

template <class S>
inline constexpr bool is_spec = false;
template <class T, index_t... D>
inline constexpr bool is_spec<spec_t<T, D...>> = true;
template <auto... S>
concept specs = (is_spec<std::remove_cvref_t<decltype(S)>> && ...);

/// True if all sizes of the specs are numbers.
template <auto... S>
concept fixed_specs = (std::remove_cvref_t<decltype(S)>::fixed && ...);

/// The static value that a spec declares.
template <class S>
struct declared_type;
template <class T, index_t... D>
struct declared_type<spec_t<T, D...>> {
  using element = T;
  using type = static_value<T, ints<D...>>;
};
template <class S>
using declared = typename declared_type<S>::type;

/// The role of a tensor in messages: the `number`-th argument or result, with its declared dtype and sizes.
struct tensor_role {
  char const* kind;
  int number;
  meta expected;
};
VARVE_COLD inline std::string text_of(meta const& m) { return name(m.type) + to_string(m.sizes); }
VARVE_COLD inline std::string text_of(tensor_role const& r) {
  return std::string("varve: fuse: ") + r.kind + " " + std::to_string(r.number) + " ";
}
/// True if code that observes the calls of this thread would miss a fused call. The observer is a mode, or a trace by
/// `compile`, which would record the current elements of a captured tensor as constants.
VARVE_COLD inline bool is_missed() {
  thread_state const& s = this_thread_state;
  constexpr dispatch_key_set modes{dispatch_key::dispatch_mode, dispatch_key::pre_dispatch,
                                   dispatch_key::function_mode};
  bool traced = false;
  for (layer const* l = varve::detail::watches_reads ? s.transforms.top : nullptr; l; l = l->below)
    traced = traced || l->kind->is_trace();
  return traced || (s.included - s.excluded).has_any(modes);
}
/// Throws the error for a tensor that cannot be used in role `r`. `sizes` are the sizes that would be accepted, in
/// place of the declared ones; `why` is appended to the message.
[[noreturn]] VARVE_COLD inline void refuse_tensor(tensor_role const& r, tensor const& t, dims const& sizes,
                                                  std::string const& why = {}) {
  std::string const start = text_of(r), end = ", expected " + text_of(r.expected) + why;
  if (!t.defined()) refuse::with<value_error>((start + "is an undefined tensor" + end).c_str());
  if (t.is_wrapped())
    refuse::with<transform_error>((start +
                                   "is seen through a transform, which cannot look into a fused function; fuse the "
                                   "transformed function: fuse<...>(grad(f))")
                                      .c_str());
  if (this_thread_state.included.bits && is_missed())
    refuse::with<transform_error>(
        (start + "is given while a mode is on, or a function is being compiled, which cannot look into "
                 "a fused function; call the function itself, or compile(f), which does so")
            .c_str());
  if (!t.has_data())
    refuse::with<transform_error>(
        (start + "is a meta tensor or a subclass, which has no memory of its own; unwrap it first").c_str());
  if (!t.keys().has(dispatch_key::cpu))
    refuse::with<dispatch_error>((start + "belongs to another backend than the cpu; copy it there first").c_str());
  std::string const found = "is " + text_of(meta{t.dtype(), t.sizes()});
  if (t.dtype() != r.expected.type) refuse::with<dtype_error>((start + found + end).c_str());
  if (!(t.sizes() == sizes)) refuse::with<shape_error>((start + found + end).c_str());
  refuse::with<autograd_error>((start +
                                "requires grad, which a fused function does not record; pass x.detach(), call it under "
                                "no_grad, or fuse<...>(grad(f)) for its gradient")
                                   .c_str());
}
/// Throws the error for a tensor that is as declared but cannot be written to.
[[noreturn]] VARVE_COLD inline void refuse_target(tensor_role const& r, tensor const& t) {
  if (!t.is_contiguous())
    refuse::with<value_error>((text_of(r) + "is not contiguous; write to a contiguous tensor and copy").c_str());
  refuse::with<autograd_error>(
      (text_of(r) + "was made in inference mode and cannot be written into outside of it; clone it first").c_str());
}
[[noreturn]] VARVE_COLD inline void refuse_overlap(tensor_role const& r, char const* kind, int number) {
  refuse::with<value_error>(
      (text_of(r) + "overlaps " + kind + " " + std::to_string(number) + "; write to memory of its own").c_str());
}
/// Returns the tensor whose memory is used: for a value whose transform has ended, the tensor inside; otherwise `t`.
VARVE_INLINE tensor const& plain_tensor(tensor const& t) {
  return t.defined() && t.is_wrapped() ? varve::detail::left_in(this_thread_state.transforms.top, t) : t;
}
/// Throws if a tensor does not meet the requirements for access to its memory.
VARVE_INLINE void check_tensor(tensor_role const& r, tensor const& t) {
  if (!t.defined() || t.is_wrapped() || !t.has_data() || !t.keys().has(dispatch_key::cpu) ||
      t.dtype() != r.expected.type || !(t.sizes() == r.expected.sizes) || (t.has_history() && is_grad_enabled()) ||
      (this_thread_state.included.bits && is_missed())) [[unlikely]]
    refuse_tensor(r, t, r.expected.sizes);
}

/// Returns a copy with the elements in row-major order. It does not call the operator, which modes would see.
template <class T>
VARVE_NOINLINE tensor in_row_major_order(T const* data, dims const& sizes, dims const& strides) {
  tensor r = tensor::empty(sizes, dtype_of_type<T>());
  auto* out = static_cast<T*>(r.raw());
  strided<T const> const from{data, sizes, strides};
  for_each_index(sizes, [&](dims const& i) { *out++ = from.at(i); });
  return r;
}

/// The address range of a row-major value.
struct memory_range {
  std::uintptr_t from, to;
  constexpr bool overlaps(memory_range const& o) const { return from < o.to && o.from < to; }
};
inline memory_range range_of(void const* data, meta const& m) {
  auto const from = reinterpret_cast<std::uintptr_t>(data);
  return {from, from + static_cast<std::uintptr_t>(numel(m.sizes) * itemsize(m.type))};
}

/// The `K`-th argument, checked against its spec `S`: memory, or a converted number.
template <class S, int K>
struct checked_argument {
  using element = typename declared_type<S>::element;
  static constexpr meta expected = S::info();
  static constexpr tensor_role role{"argument", K, expected};

  explicit checked_argument(tensor const& given) {
    tensor const& t = plain_tensor(given);
    check_tensor(role, t);
    if (!t.is_contiguous()) [[unlikely]]
      copy_ = in_row_major_order(static_cast<element const*>(t.raw()), t.sizes(), t.strides());
    memory_ = copy_.defined() ? copy_.raw() : t.raw();
  }
  template <class X>
    requires requires { typename X::tensor_type; }
  explicit checked_argument(X const& x) : checked_argument(x.view()) {}
  template <class X>
    requires(!std::is_same_v<X, tensor> && !requires { typename X::tensor_type; })
  explicit checked_argument(X const& x) {
    constexpr bool number = std::is_arithmetic_v<X> && expected.sizes.n == 0 &&
                            (std::is_floating_point_v<element> || std::is_integral_v<X>); // no fraction for an integer
    static_assert(
        number || std::is_same_v<argument<X>, declared<S>>,
        "varve: fuse: an argument is neither a tensor nor a static value of the element type and shape of its spec");
    if constexpr (number) number_ = static_cast<element>(x);
    else if constexpr (std::is_same_v<argument<X>, declared<S>>) memory_ = data_of(x);
  }
  void const* data() const { return memory_ ? memory_ : &number_; }
  memory_range range() const { return range_of(data(), expected); }

private:
  void const* memory_ = nullptr;
  element number_{};
  tensor copy_;
};

/// The arguments of one call, checked in order.
template <class Numbers, class... S>
struct checked_arguments;
template <int... K, class... S>
struct checked_arguments<std::integer_sequence<int, K...>, S...> {
  std::tuple<checked_argument<S, K>...> all;
  template <class... X>
  explicit checked_arguments(X const&... x) : all{x...} {}
};

/// Runs program `P` on checked arguments into the memory `out...`.
template <class P, class... A, class... R>
VARVE_WHOLE void run_checked(std::tuple<A...> const& in, R*... out) {
  std::apply([&](auto const&... a) { P::template run<sizeof...(A), sizeof...(R)>({{a.data()...}, {out...}, nullptr}); },
             in);
}

template <class P, int K>
inline constexpr tensor_role result_role{"result", K, P::value.results[K]};

/// Throws if a tensor does not meet the requirements for writing to it. `before` are the address ranges of the results
/// before it. Returns its own address range.
template <class... A>
memory_range check_target(tensor_role const& role, tensor const& t, std::tuple<A...> const& in,
                          memory_range const* before) {
  check_tensor(role, t);
  if (!t.is_contiguous() || (t.is_inference() && !is_inference_mode_enabled())) [[unlikely]]
    refuse_target(role, t);
  memory_range const mine = range_of(t.raw(), role.expected);
  auto const apart = [&](memory_range const& other, char const* kind, int number) {
    if (mine.overlaps(other)) [[unlikely]]
      refuse_overlap(role, kind, number);
  };
  std::apply([&, number = 0](auto const&... a) mutable { (apart(a.range(), "argument", number++), ...); }, in);
  for (int k = 0; k < role.number; ++k) apart(before[k], "result", k);
  return mine;
}

/// The tensors to be written, variables by reference; a call with the arguments writes to them.
template <class P, class Specs, class... R>
struct tensor_writer;
template <class P, class... S, class... R>
struct tensor_writer<P, std::tuple<S...>, R...> {
  std::tuple<R...> out;
  template <class... X>
  void operator()(X const&... x) const {
    static_assert(sizeof...(X) == sizeof...(S), "varve: fuse: the call must have as many arguments as there are specs");
    if constexpr (sizeof...(X) == sizeof...(S))
      write(std::index_sequence_for<R...>{},
            checked_arguments<std::make_integer_sequence<int, sizeof...(S)>, S...>(x...).all);
  }

private:
  template <std::size_t... K>
  void write(std::index_sequence<K...>, auto const& in) const {
    memory_range taken[sizeof...(K) + 1]{};
    ((taken[K] = check_target(result_role<P, static_cast<int>(K)>, plain_tensor(std::get<K>(out)), in, taken)), ...);
    run_checked<P>(in, std::get<K>(out).raw()...);
    (std::get<K>(out).bump_version(), ...);
  }
};
} // namespace fusion

/// A function compiled as a whole for declared arguments: see `fuse<spec<...>...>`.
template <class F, class How, class... S>
struct fused_for {
  static_assert(fusion::execution<How>,
                "varve: fuse: the second argument says how the function is executed: table_driven");
  static_assert(std::is_empty_v<F>,
                "varve: fuse: the function must capture nothing; pass the values as arguments, or compile(f)");

  /// The program, as a constant.
  using program = fusion::program_for<How, F, fusion::declared<S>...>;
  /// Bytes of stack that temporaries need.
  static constexpr index_t workspace_bytes = program::value.workspace;

  /// Runs on tensors and returns new tensors, several as a `std::tuple`. For a spec of rank 0 a number is accepted (for
  /// an integer spec an integer). For any spec a static value (`array`, `tensor_ref`) of the declared type is accepted.
  /// Views with `dyn` extents are treated as tensors. Tensors whose elements are not in row-major order are copied
  /// first. Throws `dtype_error` and `shape_error` with the number of the argument, expected and found. Throws
  /// `transform_error` for values seen through an active transform, and `autograd_error` for tensors that require grad
  /// while grad mode is enabled.
  template <class... X>
  auto operator()(X const&... x) const {
    static_assert(sizeof...(X) == sizeof...(S), "varve: fuse: the call must have as many arguments as there are specs");
    if constexpr (fusion::execution<How> && std::is_empty_v<F> && sizeof...(X) == sizeof...(S)) {
      if constexpr (fusion::accept_function<F, fusion::declared<S>...>()) return run(x...);
      else return nth<0>(x...); // gives the result a type, so that its uses cause no further error messages
    }
  }
  /// Writes the results to tensors: `f.into(r...)(x...)`. Their dtypes and shapes are checked as those of arguments.
  /// They must be contiguous and must overlap neither an argument nor each other (`value_error`). If a check fails,
  /// nothing is written. Their version counters increase by one.
  template <class... R>
    requires(std::is_same_v<std::remove_cvref_t<R>, tensor> && ...)
  auto into(R&&... r) const {
    if constexpr (fusion::accept_function<F, fusion::declared<S>...>()) {
      static_assert(program::value.used.results == sizeof...(R),
                    "varve: fuse: into(...) needs as many tensors as the function has results");
      return fusion::tensor_writer<program, std::tuple<S...>, R...>{{static_cast<R&&>(r)...}};
    }
  }
  /// Writes the results to the tensors of a tuple: `f.into(std::tuple{a, b})(x...)`.
  template <fusion::tuple_of_targets R>
  auto into(R&& r) const {
    return std::apply([this](auto&&... one) { return into(static_cast<decltype(one)>(one)...); }, static_cast<R&&>(r));
  }

private:
  template <class... X>
  static auto run(X const&... x) {
    fusion::checked_arguments<std::make_integer_sequence<int, sizeof...(S)>, S...> const in(x...);
    return [&]<std::size_t... K>(std::index_sequence<K...>) {
      auto made = [](meta const& m) { return tensor::empty(m.sizes, m.type); };
      if constexpr (sizeof...(K) == 1) {
        tensor r = made(program::value.results[0]);
        fusion::run_checked<program>(in.all, r.raw());
        return r;
      } else {
        tensor r[] = {made(program::value.results[K])...};
        fusion::run_checked<program>(in.all, r[K].raw()...);
        return std::tuple{static_cast<tensor&&>(r[K])...};
      }
    }(std::make_index_sequence<program::value.used.results>{});
  }
};

/// Compiles a function for tensors: `constexpr auto step = fuse<spec<float, 8, 3>, spec<float>>(f); tensor y = step(x,
/// 0.5);`. The dtype, rank and sizes of each argument are checked once at entry. Then the program of `fuse` runs
/// directly on the memory, without dispatch. It allocates only the results and copies of arguments that are not
/// contiguous.
template <auto First, auto... Rest, class F>
  requires(fusion::specs<First, Rest...> && fusion::fixed_specs<First, Rest...>)
constexpr fused_for<F, fusion::unrolled, std::remove_cvref_t<decltype(First)>, std::remove_cvref_t<decltype(Rest)>...>
fuse(F const&) {
  return {};
}
/// Compiles a function for tensors and another way of execution: `fuse<spec<float, 64>>(f, table_driven)`.
template <auto First, auto... Rest, class F, class How>
  requires fusion::specs<First, Rest...>
constexpr auto fuse(F const&, How) {
  static_assert(
      fusion::fixed_specs<First, Rest...>,
      "varve: fuse: table_driven: the sizes of a spec must be numbers; leave table_driven out for symbolic ones");
  if constexpr (fusion::fixed_specs<First, Rest...>)
    return fused_for<F, How, std::remove_cvref_t<decltype(First)>, std::remove_cvref_t<decltype(Rest)>...>{};
}

} // namespace varve
