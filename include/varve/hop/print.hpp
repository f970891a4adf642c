// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <varve/op/create.hpp>
#include <varve/op/slice.hpp>
#include <varve/rule/effect.hpp>
#include <varve/trace/proxy.hpp>
#include <varve/value/print.hpp>

#include <atomic>
#include <iostream>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

/// @file
/// `print` as an operator (`torch.ops.higher_order.print`): printing is part of the program.
namespace varve {

namespace detail {
inline std::atomic<std::ostream*> print_stream{nullptr};
inline std::mutex print_lock;
/// Encodes the text of a call in its attributes, so that a graph does not depend on the process that created it. The
/// first entry is the number of axes of lanes; each other entry contains seven characters.
class print_text {
public:
  static constexpr int lists = attributes::capacity, entries = lists * max_rank - 1, most = entries * 7;

  static attributes packed(std::string_view text) {
    if (text.size() > most)
      refuse::argument_is_invalid("print", "the text has more than 161 characters; print it in parts");
    attributes at(dims{0}, dims{}, dims{});
    for (std::size_t k = 0; k < text.size(); k += 7) {
      index_t seven = 0;
      for (std::size_t c = k; c < k + 7 && c < text.size(); ++c)
        seven |= static_cast<index_t>(static_cast<unsigned char>(text[c])) << 8 * (c - k);
      int const entry = 1 + static_cast<int>(k / 7);
      at.fact[entry / max_rank].push_back(seven);
    }
    return at;
  }
  static std::string of(attributes const& at) {
    std::string r;
    for (int list = 0; list < lists; ++list)
      for (int k = list == 0; k < at[list].n; ++k)
        for (int c = 0; c < 7; ++c)
          if (char const one = static_cast<char>(at[list][k].number() >> 8 * c & 255); one != 0) r += one;
    return r;
  }
};
/// Returns the number of places `{}` for values in a text; `{{` and `}}` stand for braces. Returns -1 if there is any
/// other brace.
constexpr int places_in(std::string_view text) {
  int n = 0;
  for (std::size_t k = 0; k < text.size(); ++k) {
    if (text[k] != '{' && text[k] != '}') continue;
    bool const next = k + 1 < text.size();
    if (next && text[k + 1] == text[k]) ++k;
    else if (next && text[k] == '{' && text[k + 1] == '}') ++k, ++n;
    else return -1;
  }
  return n;
}
inline void require_places(std::string_view text, int operands) {
  if (int const n = places_in(text); n != operands)
    refuse::argument_is_invalid("print", n < 0 ? "a brace in the text stands alone; {} is a value, {{ and }} are braces"
                                               : "the text must have as many {} as there are values behind it");
}
/// Writes a line: the text with the values in its places.
inline void write_line(std::string_view text, std::vector<std::string> const& values) {
  std::string line;
  std::size_t next = 0;
  for (std::size_t k = 0; k < text.size(); ++k) {
    if (text[k] == '{' && text[k + 1] == '}') line += values[next++];
    else line += text[k];
    if (text[k] == '{' || text[k] == '}') ++k;
  }
  line += '\n';
  std::lock_guard const one_at_a_time(print_lock);
  std::ostream* const to = print_stream.load(std::memory_order_acquire);
  (to ? *to : std::cout) << line << std::flush;
}
/// Returns the text of a value: a number for rank 0, else as tensors are printed, without information about gradients.
template <class T>
std::string printed(T const& t) {
  if (t.has_history()) return printed(T(t.detach()));
  if (t.dim() || !t.has_data()) return to_string(t);
  std::string r;
  print_element(r, t, 0);
  return r;
}
inline constexpr char const* print_names[] = {"print.0", "print.1", "print.2", "print.3", "print.4",
                                              "print.5", "print.6", "print.7", "print.8"};
inline constexpr char const* print_schemas[] = {
    "(int[] text, int[] more, int[] rest) -> ()",
    "(Tensor a, int[] text, int[] more, int[] rest) -> ()",
    "(Tensor a, Tensor b, int[] text, int[] more, int[] rest) -> ()",
    "(Tensor a, Tensor b, Tensor c, int[] text, int[] more, int[] rest) -> ()",
    "(Tensor a, Tensor b, Tensor c, Tensor d, int[] text, int[] more, int[] rest) -> ()",
    "(Tensor a, Tensor b, Tensor c, Tensor d, Tensor e, int[] text, int[] more, int[] rest) -> ()",
    "(Tensor a, Tensor b, Tensor c, Tensor d, Tensor e, Tensor f, int[] text, int[] more, int[] rest) -> ()",
    "(Tensor a, Tensor b, Tensor c, Tensor d, Tensor e, Tensor f, Tensor g, int[] text, int[] more, int[] rest) -> ()",
    ("(Tensor a, Tensor b, Tensor c, Tensor d, Tensor e, Tensor f, Tensor g, Tensor h, int[] text, int[] more, "
     "int[] rest) -> ()")}; // parenthesized: clang 19 suspects a missing comma between two strings
} // namespace detail

/// Tag of `print` with `Values` values. In graphs the operator with one value is named `print.1`.
template <int Values>
struct print_of_t {
  static constexpr auto op_name = detail::print_names[Values];
};
/// The rules of `print`. Its attributes are the text (`detail::print_text`). Mapped operands have the lanes in front;
/// the first number of the attributes is the number of axes of lanes.
template <int Values>
struct rules<print_of_t<Values>> : rule::effect<rules<print_of_t<Values>>, Values> {
  static constexpr bool in_headers = true, takes_compact = true;
  static constexpr auto schema = detail::print_schemas[Values];
  static attributes checked(attributes const& at, meta const*) {
    if (!at[0].n || at[0][0] < 0 || (Values == 0 && at[0][0] > 0))
      refuse::argument_is_invalid("print", "the text begins with the number of axes of lanes");
    detail::require_places(detail::print_text::of(at), Values);
    return at;
  }
  static void text(attributes const& at, char* to, int most) {
    std::string const t = detail::print_text::of(at);
    std::size_t const n = t.copy(to, static_cast<std::size_t>(most));
    to[n] = 0;
  }
  template <class A, class... X>
  static tensor make(A const& at, X const&... x) {
    std::string const text = detail::print_text::of(at);
    print_lanes(text, static_cast<int>(at[0][0]), x...);
    return detail::unacted_result<rules>(at, x...);
  }
  template <class Op, class N, class... O>
  static tensor batch(Op const& op, N const& n, O const&... o) {
    if constexpr (sizeof...(O) > 0) {
      dims text = to_dims(op.a);
      text[0] = text[0] + 1;
      return expand(bind<print_of_t<Values>>(text, to_dims(op.b), to_dims(op.c))(materialize(o, n)...), to_dims(n));
    } else {
      return tensor(); // no operand, so nothing is mapped
    }
  }

private:
  template <class... X>
  static void print_lanes(std::string const& text, int axes, X const&... x) {
    if (axes == 0) return detail::write_line(text, {detail::printed(x)...});
    if (!((x.dim() > 0) && ...)) refuse::argument_is_invalid("print", "a value has no axis of lanes");
    if constexpr (sizeof...(X) > 0)
      for (index_t lane = 0, lanes = nth<0>(x...).sizes()[0]; lane < lanes; ++lane)
        print_lanes(text, axes - 1, select(x, 0, lane)...);
  }
};

namespace detail {
/// Returns a static value as a tensor, without the tangents and tapes of the transforms that differentiate it.
template <class V>
auto opened_to_print(V const& v) {
  if constexpr (is_seen<V>) {
    static_assert(
        !requires { v.in.n; }, "varve: print: a static vmap has no lanes to tell apart while it runs; print "
                               "outside of it, or map tensors");
    return opened_to_print(v.value);
  } else {
    if constexpr (std::is_same_v<V, tensor>) return v;
    else return tensor(as_tensor(v));
  }
}
template <class... T>
void print_now(std::string_view text, T const&... x) {
  constexpr int n = sizeof...(T);
  require_places(text, n);
  attributes const at = print_text::packed(text);
  (void)create(bind<print_of_t<n>>(at[0], at[1], at[2]), x...);
}
/// Registers the operators, so that a program that includes this header can read programs that print.
inline bool const prints_are_known = []<int... Values>(std::integer_sequence<int, Values...>) {
  return (registered_table<print_of_t<Values>, print_text::lists>() && ...);
}(std::make_integer_sequence<int, 9>{});
} // namespace detail

/// Writes a text, with values in place of `{}`, and a newline: `print("x = {}, y = {}", x, y)`. It writes to the stream
/// that `print_to` names, by default to the standard output. It accepts up to 8 values (tensors, static values or
/// numbers) and 161 characters. Throws `value_error` if the text does not match the values.
///
/// It is an operator: an effect with an order (`rule::effect`). Graphs of `make_fx`, ahead-of-time programs and
/// exported programs keep it in order with other effects; they print whenever they run, and not while they are traced.
/// `compile` runs functions that print operator by operator. Fused programs, and what the compiler traces, refuse it.
///
/// Values are printed as `grad` and `jvp` see them inside, without tangents. A gradient that runs a function again does
/// not print again. `vmap` prints once for each lane, in their order, or once if no value is mapped. In functions that
/// only some lanes run, printing is refused.
template <value... X>
  requires(sizeof...(X) <= 8)
constexpr void print(std::string_view text, X const&... x) {
  constexpr bool traced = (std::is_same_v<base_of<X>, proxy> || ...);
  static_assert(!traced,
                "varve: print: it does something outside of the program, which has no place in a graph that the "
                "compiler makes (trace, fuse); trace at run time (make_fx, compile), or print outside");
  if constexpr (!traced) detail::print_now(text, detail::opened_to_print(x)...);
}

/// Redirects `print` to a stream for the lifetime of this object, on all threads: `print_to const here(log);`.
class print_to {
public:
  explicit print_to(std::ostream& to) : before_(detail::print_stream.exchange(&to)) {}
  print_to(print_to const&) = delete;
  print_to& operator=(print_to const&) = delete;
  ~print_to() { detail::print_stream.store(before_, std::memory_order_release); }

private:
  std::ostream* before_;
};

} // namespace varve
