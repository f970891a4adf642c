// SPDX-License-Identifier: BSL-1.0
#pragma once
/// @file
/// Makes programs. Each statement is run on example values while it is chosen: what the library refuses or what grows
/// too large is not taken, and the example tells the type of the result.
#include "run.hpp"

#include <algorithm>
#include <cmath>

namespace random_programs {

/// Rows that meet rarely by chance, and whose faults lie where they meet: half of the programs prefer one such family.
struct family {
  std::vector<std::string> rows;     // from which most statements come
  std::vector<std::string> carriers; // ... and carriers
  bool writes = false;               // in bodies too, into what is around them
  std::vector<dims> shapes{};        // of inputs
  std::vector<dtype> types{};        // ... behind the first
};
inline std::vector<std::string> const& in_place_rows() {
  static std::vector<std::string> const some{"add_", "mul_", "sub_", "copy_", "cos_", "mul_ by a number", "fill_"};
  return some;
}
inline std::vector<family> const& families() {
  static std::vector<std::string> const branches{"cond", "cond", "cond", "while_loop", "map", "vmap", "scan"};
  auto const with_writes = [](std::vector<std::string> rows) {
    rows.insert(rows.end(), in_place_rows().begin(), in_place_rows().end());
    return rows;
  };
  static family const infinite_in_branches{
      .rows = {"sqrt", "log", "reciprocal", "div", "mul of floats", "sub", "sum", "square"},
      .carriers = branches,
      .shapes = {{}, {}, {1}, {2}}};
  static family const written_in_branches{
      .rows = with_writes({"mul of floats", "select", "slice", "clone"}), .carriers = branches, .writes = true};
  static family const views_of_views{
      .rows = with_writes({"as_strided", "as_strided", "place in region", "place in region", "place in region", "slice",
                           "slice", "select", "select", "expand", "transpose", "permute", "mul by a number"}),
      .carriers = {"functionalize", "compile", "checkpoint", "map"},
      .writes = true,
      .shapes = {{6}, {6}, {2, 3}, {}}};
  static family const wide_numbers{
      .rows = {"clamp to numbers", "less than a number", "maximum with a number", "add a whole number", "to", "to",
               "lt", "ge", "where", "maximum", "minimum", "amax", "add", "mul"},
      .carriers = {"compile", "vmap", "map", "cond"},
      .types = {dtype::uint8, dtype::int8, dtype::int16, dtype::int32, dtype::int64, dtype::bool_}};
  static family const derivatives_of_their_own{
      .rows = {"square_by_seven", "sine_by_argument", "product_and_sum", "double_and_mark", "step_through", "detach",
               "mul of floats", "sub"},
      .carriers = {"checkpoint", "no_grad", "scan", "map", "cond", "grad", "jvp"}};
  static family const orders_and_matrices{
      .rows = with_writes({"sort",           "topk",
                           "median",         "kthvalue",
                           "cummax",         "max_along",
                           "take_along_dim", "index_select",
                           "index_add",      "scatter_reduce",
                           "take",           "rows by index",
                           "diagonal",       "diagonal_scatter",
                           "tril",           "solve",
                           "inverse",        "det",
                           "cholesky",       "einsum",
                           "attention",      "layer_norm",
                           "cumprod",        "prod",
                           "unbind",         "chunk",
                           "mul of floats",  "select"}),
      .carriers = {"vmap", "vmap", "map", "scan", "grad", "jvp", "checkpoint", "compile", "cond"},
      .shapes = {{2, 2}, {3, 3}, {2, 3}, {3}}};
  static family const as_memory_lies{.rows = with_writes({"reshape", "reshape", "reshape", "permute", "permute",
                                                          "transpose", "slice", "select", "mul by a number"}),
                                     .carriers = {"functionalize", "compile"},
                                     .writes = true,
                                     .shapes = {{2, 3}, {3, 2}, {2, 2}, {6}}};
  static family const hidden_writes{.rows = {"mul_ of data", "fill_ of data", "mul_ of data", "mul_", "mul by a number",
                                             "mul of floats", "select", "slice", "sin", "detach"},
                                    .carriers = {"compile", "functionalize", "checkpoint"},
                                    .writes = true};
  static family const small_types{
      .rows = {"add", "mul", "sub", "neg", "abs", "maximum", "sum", "mean", "amax", "where", "lt", "to", "tanh", "exp",
               "cat", "slice", "mul_", "add a number", "matmul"},
      .carriers = {"compile", "vmap", "map", "cond"},
      .types = {dtype::float16, dtype::bfloat16, dtype::int8, dtype::int16, dtype::float32}};
  static family const complex_numbers{
      .rows = {"complex", "complex", "polar", "mul of complex", "conj", "exp of complex", "div of complex",
               "abs of complex", "real", "imag", "sum of complex", "matmul of complex", "view_as_real", "select"},
      .carriers = {"vmap", "map", "scan", "cond", "grad", "jvp", "checkpoint", "compile"}};
  static family const sizes_of_data{.rows = {"first places", "sum of first places", "ones for positive",
                                             "values for positive", "masked_select", "nonzero", "mul by a number",
                                             "sin", "sum", "mean", "mul of floats"},
                                    .carriers = {"cond", "map", "scan", "while_loop", "checkpoint", "compile"},
                                    .shapes = {{2}, {3}, {2, 3}, {}}};
  static family const numbers_in_lanes{
      .rows = {"sum", "mean", "amax", "amin", "softmax", "logsumexp", "argmax", "mul of floats", "cumsum"},
      .carriers = {"vmap", "vmap", "map", "scan"},
      .shapes = {{}, {2}, {3}}};
  static std::vector<family> const all{orders_and_matrices, infinite_in_branches, written_in_branches,
                                       views_of_views,      wide_numbers,         derivatives_of_their_own,
                                       as_memory_lies,      hidden_writes,        small_types,
                                       numbers_in_lanes,    complex_numbers,      sizes_of_data};
  return all;
}

class maker {
public:
  /// For the compiler: float64 alone, one result, nothing that only tensors do.
  enum class world { tensors, compiler };
  explicit maker(std::uint64_t seed, world w = world::tensors) : draw_(seed), static_(w == world::compiler) {}

  program operator()() {
    if (!static_ && draw_.once_in(2)) family_ = &draw_.of(families());
    p_.smooth = !family_ && draw_.once_in(3);
    p_.special = !p_.smooth && draw_.once_in(8);
    p_.draws = !p_.special && draw_.once_in(12);
    custom_ = !p_.smooth && draw_.once_in(2);
    writes_ = draw_.once_in(2);
    carries_ = !draw_.once_in(3);
    for (int k = 0; family_ && k < 4; ++k) favourites_.push_back(find(draw_.of(family_->rows)));
    if (family_) custom_ = carries_ = true, writes_ = writes_ || family_->writes;
    p_.lies = family_ && family_->rows.front() == "reshape";
    p_.hides = family_ && family_->rows.front() == "mul_ of data";
    further_ = !static_ && draw_.once_in(2);
    further_rows_.assign(4, &optional_rows());
    if (draw_.once_in(4)) further_rows_.push_back(&complex_rows());
    if (draw_.once_in(4)) further_rows_.push_back(&rows_of_data());
    if (static_) p_.special = p_.draws = writes_ = carries_ = false;
    scope s;
    make_inputs(s);
    varying_.push_back(0);
    extend(p_.body, s, (family_ ? 5 : 3) + draw_.below(8), 0);
    choose_results(p_.body, s, static_ ? 1 : 1 + draw_.below(2));
    p_.count = static_cast<int>(e_.size());
    return p_;
  }

private:
  /// What a statement can see, and write into.
  struct scope {
    std::vector<int> visible, writable;
  };
  static constexpr int deepest = 2, most_elements = 40;

  tensor const& example(int id) const { return e_[static_cast<std::size_t>(id)]; }
  int fresh(tensor const& t) {
    e_.push_back(t);
    return static_cast<int>(e_.size()) - 1;
  }

  // ---- inputs -----------------------------------------------------------------------------------------------------
  double element(dtype t) {
    if (t == dtype::bool_) return draw_.below(2);
    if (!varve::is_floating(t)) return draw_.below(t == dtype::uint8 ? 200 : 3);
    // Large and small as far as second derivatives of quotients, which cancel, keep digits.
    static std::vector<double> const odd{std::nan(""), HUGE_VAL, -HUGE_VAL, -0.0, 0.0, 4096, -0x1p-12};
    if (p_.special && draw_.once_in(3)) return draw_.of(odd);
    return std::floor(draw_.between(-2, 2) * 1024) / 1024;
  }
  void make_inputs(scope& s) {
    index_t const a = 2 + draw_.below(2), b = 1 + draw_.below(3);
    std::vector<dims> const shapes{{}, {a}, {b, a}, {1, a}, {b, 1}, {a}, {b, a}};
    static std::vector<dtype> const types{dtype::float64, dtype::float64, dtype::float32, dtype::int64,
                                          dtype::bool_,   dtype::float64, dtype::uint8};
    int const count = 1 + draw_.below(4);
    for (int k = 0; k < count; ++k) {
      input in;
      in.sizes = draw_.of(shapes);
      if (k > 0 && !static_) in.type = p_.smooth ? dtype::float64 : draw_.of(types);
      if (family_ && !family_->shapes.empty()) in.sizes = draw_.of(family_->shapes);
      if (k > 0 && family_ && !family_->types.empty()) in.type = draw_.of(family_->types);
      in.captured = k > 0 && k + 1 == count && draw_.once_in(2) && !static_;
      in.memory = static_cast<sample::memory>(draw_.below(3));
      if (in.sizes.n > 0 && k > 0 && draw_.once_in(12) && !static_) in.sizes[draw_.below(in.sizes.n)] = 0;
      in.expanded = k > 0 && in.sizes.n > 0 && varve::numel(in.sizes) > 0 && draw_.once_in(8);
      for (index_t n = varve::numel(in.sizes); n > 0; --n) in.elements.push_back(element(in.type));
      s.visible.push_back(fresh(make(in)));
      bool const own = varve::is_floating(in.type) && !in.expanded && !in.captured;
      if (own && (p_.lies || p_.hides) && draw_.once_in(2)) s.writable.push_back(s.visible.back());
      p_.body.parameters.push_back(s.visible.back());
      p_.inputs.push_back(in);
    }
  }

  // ---- operands ---------------------------------------------------------------------------------------------------
  bool fits(char letter, int id) const {
    tensor const& t = example(id);
    switch (letter) {
    case 'f':
      return varve::is_floating(t.dtype());
    case 'n':
      return t.dtype() != dtype::bool_ && !varve::is_complex(t.dtype());
    case 'c':
      return varve::is_complex(t.dtype());
    case 'b':
      return t.dtype() == dtype::bool_;
    case 'i':
      return t.dtype() == dtype::int64;
    case 'w':
      return varve::is_floating(t.dtype());
    default:
      return true;
    }
  }
  /// Those of some values that are in a list, if there are any.
  static void prefer(std::vector<int>& some, std::vector<int> const& list) {
    std::vector<int> r;
    for (int id : some)
      if (std::find(list.begin(), list.end(), id) != list.end()) r.push_back(id);
    if (!r.empty()) some = r;
  }
  template <class F>
  int pick(std::vector<int> const& from, F const& suits) {
    std::vector<int> some;
    for (int id : from)
      if (suits(id)) some.push_back(id);
    if (some.empty()) return -1;
    if (family_ && draw_.once_in(2)) { // a chain: what a family is of meets
      if (family_->writes && draw_.once_in(2)) prefer(some, views_);
      return some.back();
    }
    if (draw_.once_in(2)) prefer(some, varying_);
    int const n = static_cast<int>(some.size());
    return some[static_cast<std::size_t>(std::max(draw_.below(n), draw_.below(n)))]; // rather the later ones
  }
  /// Do shapes fit, that of b into a's where that is written?
  static bool broadcast(tensor const& a, tensor const& b, bool into) {
    for (int k = 1; k <= std::min(a.dim(), b.dim()); ++k) {
      index_t const m = a.size(-k), n = b.size(-k);
      if (m != n && (m != 1 || into) && n != 1) return false;
    }
    return !into || a.dim() >= b.dim();
  }
  /// Is it in memory that a checkpoint may run again on? What is written there then is seen, in PyTorch as well.
  bool is_kept(int id) const {
    return std::any_of(kept_.begin(), kept_.end(), [&](tensor const& t) { return t.shares_storage(example(id)); });
  }
  bool choose_operands(row const& r, scope const& s, statement& st) {
    for (char const* c = r.operands; *c; ++c) {
      auto const& from = *c == 'w' ? s.writable : s.visible;
      bool const alike = !st.operands.empty() && !draw_.once_in(8), into = r.of == kind::in_place;
      int const id = pick(from, [&](int k) {
        if (*c == 'w' && is_kept(k)) return false;
        return fits(*c, k) && (!alike || broadcast(example(st.operands[0]), example(k), into));
      });
      if (id < 0) return false;
      st.operands.push_back(id);
    }
    return true;
  }

  // ---- statements -------------------------------------------------------------------------------------------------
  bool tame(tensor const& t) const {
    if (!t.defined() || t.numel() > most_elements || t.dim() > 4) return false;
    if (p_.special || loose_) return true;
    tensor const n = as_real(t);
    for (index_t k = 0; k < n.numel(); ++k)
      if (!(std::fabs(sample::element(n, k)) < (varve::is_floating(n.dtype()) ? 50.0 : 1e12))) return false;
    return true;
  }
  /// Runs a statement on the examples and, if that goes well, adds it.
  bool add(block& b, scope& s, statement st) {
    values y;
    try {
      std::vector<function> bodies;
      for (block const& f : st.bodies) bodies.push_back(closed(f, e_));
      y = st.op->run(operands_of(st, e_), st, bodies);
    } catch (varve::error const&) { return false; }
    if (st.op->of == kind::in_place) {
      written_.push_back(st.operands[0]);
      b.code.push_back(st);
      return true;
    }
    for (tensor const& t : y)
      if (!tame(t)) return false;
    for (tensor const& t : y) {
      int const id = fresh(t);
      st.results.push_back(id);
      s.visible.push_back(id);
      if (varies(st)) varying_.push_back(id);
      if (st.op->of == kind::view) views_.push_back(id);
      if (is_writable(st, s, t)) s.writable.push_back(id);
    }
    b.code.push_back(st);
    return !y.empty();
  }
  bool varies(statement const& st) const {
    for (int id : st.operands)
      if (std::find(varying_.begin(), varying_.end(), id) != varying_.end()) return true;
    return !st.bodies.empty();
  }
  bool is_writable(statement const& st, scope const& s, tensor const& t) {
    if (!varve::is_floating(t.dtype())) return false;
    std::string const name = st.op->name;
    bool const shares = st.op->of == kind::view || name == "to";
    if (name == "expand" || name == "detach") return false; // a write behind the back of derivatives
    if (shares) return std::find(s.writable.begin(), s.writable.end(), st.operands[0]) != s.writable.end();
    if (name == "compile") return false; // results that are one tensor may be two of their own
    return st.op->of != kind::carrier || draw_.once_in(4);
  }
  bool allowed(row const& r) const {
    static std::vector<std::string> const tensors_alone{"argmax",      "to",         "one_hot",        "index",
                                                        "count on",    "counter",    "zeros",          "gather",
                                                        "scatter_add", "as_strided", "place in region"};
    if (static_ && std::find(tensors_alone.begin(), tensors_alone.end(), r.name) != tensors_alone.end()) return false;
    if (p_.smooth && !r.smooth) return false;
    bool const lies = family_ && !family_->rows.empty() && family_->rows.front() == "reshape";
    if (writes_ && std::string(r.name) == "reshape" && !lies) return false; // a view or a copy, as memory lies
    if (std::string(r.name).find(" of data") != std::string::npos && !(family_ && family_->rows.front() == r.name))
      if (!family_ || family_->rows.front() != "mul_ of data") return false;
    if (p_.special && &r >= complex_rows().data() && &r < complex_rows().data() + complex_rows().size())
      return false; // products of infinite parts differ by their order
    bool const by_data =
        std::find(further_rows_.begin(), further_rows_.end(), &rows_of_data()) != further_rows_.end() ||
        (family_ && family_->rows.front() == rows_of_data().front().name);
    if (by_data && std::string(r.name) == "squeeze") return false; // a size of data counts as none of 1 (SY-6)
    if (r.of == kind::custom && !custom_) return false;
    if (r.of == kind::in_place && !writes_) return false;
    if (r.of == kind::random && !p_.draws) return false;
    if (p_.smooth && r.of == kind::integer) return false;
    return true;
  }
  kind draw_kind() {
    static std::vector<kind> const some{kind::pointwise, kind::pointwise, kind::pointwise, kind::pointwise,
                                        kind::number,    kind::reduction, kind::view,      kind::view,
                                        kind::join,      kind::integer,   kind::in_place,  kind::in_place,
                                        kind::custom,    kind::random,    kind::view};
    return draw_.of(some);
  }
  /// A conversion that C++ leaves open.
  bool undefined(statement const& st) const {
    if (std::string(st.op->name) != "to") return false;
    dtype const from = example(st.operands[0]).dtype(), to = static_cast<dtype>(st.at[0][0]);
    if (varve::is_complex(from)) return true; // it would lose a part
    bool const narrows = varve::is_floating(from) && !varve::is_floating(to) && to != dtype::bool_;
    return narrows && (p_.special || to == dtype::uint8);
  }
  row const* draw_row() {
    if (family_ && !draw_.once_in(3)) {
      row const* const r = draw_.of(favourites_);
      return allowed(*r) ? r : nullptr;
    }
    kind const of = draw_kind();
    std::vector<row const*> some;
    for (row const& r : further_&& draw_.once_in(2) ? *draw_.of(further_rows_) : plain_rows())
      if (r.of == of && allowed(r)) some.push_back(&r);
    return some.empty() ? nullptr : draw_.of(some);
  }
  bool add_plain(block& b, scope& s, row const* op) {
    statement st;
    st.op = op;
    if (!st.op) return false;
    if (!choose_operands(*st.op, s, st)) return false;
    values x = operands_of(st, e_);
    if (x.empty()) x.push_back(example(s.visible[0])); // a factory makes something like what is there
    if (st.op->choose && !st.op->choose(draw_, x, st)) return false;
    if (undefined(st)) return false;
    if (!add(b, s, st)) return false;
    bool const shows = st.op->of == kind::view && family_ && family_->writes;
    bool const writable = shows && !s.writable.empty() && s.writable.back() == b.code.back().results[0];
    if (writable && draw_.once_in(2)) add_plain(b, s, find(draw_.of(in_place_rows()))); // what was made to be written
    return true;
  }
  /// Adds statements until there are enough.
  void extend(block& b, scope& s, int count, int depth) {
    for (int tries = 0; count > 0 && tries < 200; ++tries) {
      bool const carrier = carries_ && depth < deepest && draw_.once_in(depth == 0 ? (family_ ? 4 : 5) : 8);
      count -= carrier ? 2 * add_carrier(b, s, depth) : add_plain(b, s, draw_row());
    }
  }
  /// The last floating value, and others.
  void choose_results(block& b, scope const& s, int count) {
    for (auto id = s.visible.rbegin(); id != s.visible.rend() && b.results.empty(); ++id)
      if (varve::is_floating(example(*id).dtype())) b.results.push_back(*id);
    auto const was_written = [&](int id) {
      return std::any_of(written_.begin(), written_.end(),
                         [&](int w) { return example(w).shares_storage(example(id)); });
    };
    while (static_cast<int>(b.results.size()) < count) {
      int const written = (family_ && family_->writes) || draw_.once_in(2) ? pick(s.visible, was_written) : -1;
      b.results.push_back(written >= 0 ? written : pick(s.visible, [](int) { return true; }));
    }
  }

  // ---- functions --------------------------------------------------------------------------------------------------
  /// A body of parameters that look like these.
  block body_of(scope s, values const& parameters, int count, int results, int depth, scope* inner = nullptr) {
    block b;
    bool const keeps_out = family_ && family_->writes ? draw_.once_in(2) : !draw_.once_in(10);
    if (keeps_out) s.writable.clear(); // rarely it may write into what is outside
    for (tensor const& t : parameters) {
      b.parameters.push_back(fresh(t));
      varying_.push_back(b.parameters.back());
      s.visible.push_back(b.parameters.back());
      if (varve::is_floating(t.dtype()) && !again_ && draw_.once_in(20)) s.writable.push_back(b.parameters.back());
    }
    extend(b, s, count, depth + 1);
    if (results > 0) choose_results(b, s, results);
    if (results > 0 && writes_) copy_results(b, s);
    if (inner) *inner = s;
    return b;
  }
  /// Results that are made inside: whether others are the same memory, or tracked, differs by who calls.
  void copy_results(block& b, scope& s) {
    for (int& id : b.results) {
      statement copy;
      copy.op = find("clone"), copy.operands = {id}, copy.stays = true;
      if (add(b, s, copy)) id = b.code.back().results[0];
    }
  }
  /// A body whose first result has the type of a value.
  block body_like(int like, scope const& s, values const& parameters, int depth, int more = 0) {
    scope inner;
    block b = body_of(s, parameters, 1 + draw_.below(4), 0, depth, &inner);
    auto const same = [&](int id) { return varve::meta_of(example(id)) == varve::meta_of(example(like)); };
    std::vector<int> const own(inner.visible.begin() + static_cast<std::ptrdiff_t>(s.visible.size()),
                               inner.visible.end());
    int result = draw_.once_in(10) ? -1 : pick(own, same);
    if (result < 0 || result == b.parameters[0]) {
      statement st;
      st.op = find("onto");
      st.operands = {pick(inner.visible, [&](int id) { return fits('f', id); }), like};
      result = add(b, inner, st) ? b.code.back().results[0] : like;
    }
    b.results = {result};
    if (more) b.results.push_back(pick(inner.visible, [](int) { return true; }));
    if (writes_) copy_results(b, inner);
    return b;
  }
  static tensor row_of(tensor const& t) { return vv::select(t, 0, 0); }
  bool add_carrier(block& b, scope& s, int depth) {
    std::vector<row const*> some;
    for (row const& r : carrier_rows())
      if (allowed(r)) some.push_back(&r);
    statement st;
    st.op = family_ && !draw_.once_in(4) ? find(draw_.of(family_->carriers)) : draw_.of(some);
    if (!allowed(*st.op)) return false;
    std::string const name = st.op->name;
    auto const is_float = [&](int id) { return fits('f', id); };
    auto const is_any = [](int) { return true; };
    if (name == "no_grad") p_.turns_off = true;
    if (name == "cond") return add_cond(b, s, st, depth);
    if (name == "while_loop") return add_while(b, s, st, depth);
    if (name == "map" || name == "scan" || name == "vmap" || name == "associative_scan")
      return add_loop(b, s, st, depth);
    st.operands = {pick(s.visible, is_float)};
    if (st.operands[0] < 0) return false;
    if (draw_.once_in(2)) st.operands.push_back(pick(s.visible, is_any));
    scope inner, around = s;
    bool const before = again_;
    again_ = again_ || name == "checkpoint"; // what runs again does the same each time
    if (again_) around.writable.clear();
    if (name == "checkpoint")
      for (int id : s.visible) kept_.push_back(example(id));
    st.bodies = {body_of(around, operands_of(st, e_), 1 + draw_.below(4), 1 + draw_.below(2), depth, &inner)};
    again_ = before;
    if (name == "no_grad" && !writes_) copy_results(st.bodies[0], inner);
    return add(b, s, st);
  }
  bool add_cond(block& b, scope& s, statement st, int depth) {
    auto const is_float = [&](int id) { return fits('f', id) && example(id).dtype() == dtype::float64; };
    int const x = pick(s.visible, is_float);
    if (x < 0) return false;
    statement total, sign;
    static std::vector<std::string> const some{"sum", "amin", "amax"};
    total.op = find(draw_.of(some)), total.at = {dims{}, dims{0}}, total.operands = {x};
    sign.op = find("is positive");
    if (!add(b, s, total)) return false;
    sign.operands = b.code.back().results;
    if (!add(b, s, sign)) return false;
    st.operands = {b.code.back().results[0], x};
    if (draw_.once_in(2)) st.operands.push_back(pick(s.visible, [](int) { return true; }));
    values parameters = operands_of(st, e_);
    parameters.erase(parameters.begin());
    bool const taken = sample::element(example(st.operands[0]), 0) != 0, before = loose_;
    for (int k = 0; k < 2; ++k) {
      loose_ = before || taken != (k == 0); // what no lane of the example runs may be infinite there
      st.bodies.push_back(body_like(x, s, parameters, depth));
    }
    loose_ = before;
    return add(b, s, st);
  }
  bool add_while(block& b, scope& s, statement st, int depth) {
    int const x = pick(s.visible, [&](int id) { return example(id).dtype() == dtype::float64; });
    statement counter;
    counter.op = find("counter");
    if (x < 0 || !add(b, s, counter)) return false;
    st.operands = {b.code.back().results[0], x};
    values const parameters = operands_of(st, e_);
    block more = body_of(s, parameters, 0, 0, deepest), step = body_like(x, s, parameters, depth);
    statement less, count;
    scope inner = s;
    less.stays = count.stays = true; // a smaller program ends too
    less.op = find("less than a number"), less.operands = {more.parameters[0]};
    less.numbers = {static_cast<double>(draw_.below(4)), 0};
    count.op = find("count on"), count.operands = {step.parameters[0], step.parameters[1]};
    if (!add(more, inner, less) || !add(step, inner, count)) return false;
    more.results = more.code.back().results;
    step.results.insert(step.results.begin(), step.code.back().results[0]);
    st.bodies = {more, step};
    return add(b, s, st);
  }
  /// What walks along dimension 0.
  bool add_loop(block& b, scope& s, statement st, int depth) {
    std::string const name = st.op->name;
    int const xs = pick(s.visible, [&](int id) {
      return fits('f', id) && example(id).dim() > 0 && example(id).size(0) > 0 && example(id).dtype() == dtype::float64;
    });
    if (xs < 0) return false;
    auto const as_long = [&](int id) { return example(id).dim() > 0 && example(id).size(0) == example(xs).size(0); };
    std::vector<int> rows{xs};
    if (name != "associative_scan" && draw_.once_in(2)) rows.push_back(pick(s.visible, as_long));
    values parameters;
    for (int id : rows) parameters.push_back(row_of(example(id)));
    if (name == "scan") {
      int const carry = pick(s.visible, [&](int id) { return example(id).dtype() == dtype::float64; });
      parameters.insert(parameters.begin(), example(carry));
      st.operands = {carry};
      st.at = {dims{1, draw_.below(2)}};
      st.bodies = {body_like(carry, s, parameters, depth, draw_.below(2))};
    } else if (name == "associative_scan") {
      block combine = body_of(s, {parameters[0], parameters[0]}, 0, 0, deepest);
      statement st2;
      static std::vector<std::string> const some{"add", "maximum", "minimum", "mul of floats"};
      st2.op = find(p_.smooth ? "add" : draw_.of(some));
      st2.operands = combine.parameters;
      scope inner = s;
      if (!add(combine, inner, st2)) return false;
      combine.results = combine.code.back().results;
      st.bodies = {combine};
    } else {
      std::size_t const count = rows.size();
      if (name == "map" && draw_.once_in(2)) {
        rows.push_back(pick(s.visible, [](int) { return true; }));
        parameters.push_back(example(rows.back()));
      }
      st.at = {dims{static_cast<index_t>(count)}};
      st.bodies = {body_of(s, parameters, 1 + draw_.below(4), 1 + draw_.below(2), depth)};
    }
    st.operands.insert(st.operands.end(), rows.begin(), rows.end());
    return add(b, s, st);
  }

  numbers draw_;
  program p_;
  environment e_;            // example values
  std::vector<int> varying_; // what depends on the first input
  std::vector<int> views_;
  std::vector<int> written_; // in place
  values kept_;
  bool static_, further_ = false, custom_ = false, writes_ = false, carries_ = false;
  bool loose_ = false, again_ = false;
  family const* family_ = nullptr;
  std::vector<row const*> favourites_; // of its rows
  std::vector<std::vector<row> const*> further_rows_;
};

/// The program of a seed.
inline program make_program(std::uint64_t seed) {
  varve::generator_guard const apart(varve::generator{seed, 0});
  program p = maker(seed)();
  given const g = inputs_of(p);
  try {
    as_function(p, g)(g.arguments);
  } catch (varve::error const&) { return make_program(seed * 31 + 7); } // what it wrote while it was made counted
  return p;
}
} // namespace random_programs
