// SPDX-License-Identifier: BSL-1.0
#pragma once
#pragma GCC diagnostic push // as in varve.hpp
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wsign-conversion"

#include <varve/export/exported_program.hpp>
#include <varve/export/safetensors.hpp>
#include <varve/pass/inline_calls.hpp>

#if __has_include(<protozero/pbf_writer.hpp>)
#include <map>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <utility>
#include <vector>
#endif

/// @file
/// Exported programs as ONNX models, which other runtimes execute: `save_onnx("model.onnx", export_program(f)(x))`.
/// Uses the header-only library protozero (Debian: libprotozero-dev). If it is not installed, this header declares
/// nothing. Writes operator set 17 of ONNX, version 8 of its format.
namespace varve {

#if __has_include(<protozero/pbf_writer.hpp>)
namespace detail {
/// Field numbers in onnx.proto.
namespace onnx_field {
inline constexpr protozero::pbf_tag_type model_version = 1, model_producer = 2, model_graph = 7, model_opset = 8,
                                         opset_version = 2, graph_node = 1, graph_name = 2, graph_initializer = 5,
                                         graph_input = 11, graph_output = 12, node_input = 1, node_output = 2,
                                         node_name = 3, node_type = 4, node_attribute = 5, attribute_name = 1,
                                         attribute_i = 3, attribute_s = 4, attribute_graph = 6, attribute_ints = 8,
                                         attribute_type = 20, tensor_dims = 1, tensor_type = 2, tensor_name = 8,
                                         tensor_raw = 9, value_name = 1, value_type = 2, type_tensor = 1, elements = 1,
                                         shape = 2, shape_dim = 1, dim_value = 1, dim_param = 2;
} // namespace onnx_field
constexpr int onnx_dtype(dtype t) {
  constexpr int numbers[] = {9, 2, 6, 7, 10, 16, 1, 11, 14, 15}; // in the order of `dtype`
  return numbers[static_cast<int>(t)];
}
/// An attribute of a node: a number, numbers, a word or a graph.
class onnx_attribute {
public:
  template <std::integral N>
  onnx_attribute(char const* name, N v) {
    begin(name), w_.add_int64(onnx_field::attribute_i, static_cast<std::int64_t>(v)),
        w_.add_int32(onnx_field::attribute_type, 2);
  }
  onnx_attribute(char const* name, std::vector<std::int64_t> const& v) {
    begin(name), w_.add_packed_int64(onnx_field::attribute_ints, v.begin(), v.end());
    w_.add_int32(onnx_field::attribute_type, 7);
  }
  onnx_attribute(char const* name, char const* word) {
    begin(name), w_.add_string(onnx_field::attribute_s, word), w_.add_int32(onnx_field::attribute_type, 3);
  }
  onnx_attribute(char const* name, std::string const& graph) {
    begin(name), w_.add_message(onnx_field::attribute_graph, graph), w_.add_int32(onnx_field::attribute_type, 5);
  }
  onnx_attribute(onnx_attribute const&) = delete;
  std::string const& bytes() const { return bytes_; }

private:
  void begin(char const* name) { w_.add_string(onnx_field::attribute_name, name); }
  std::string bytes_;
  protozero::pbf_writer w_{bytes_};
};

/// Writes one program.
class onnx_writer {
public:
  explicit onnx_writer(exported_program const& p) : program_(p), g_(inline_calls(p.graph)) {}
  std::string write() {
    if (op_handle const* const effect = effect_in(g_))
      refuse(std::string(effect->name) + " does something outside of the program, which the format cannot say");
    for (bool taken = true; taken;) { // internal names must not begin like an input's
      taken = false;
      for (auto const& i : program_.signature.inputs) taken = taken || i.name.rfind(prefix_, 0) == 0;
      for (auto const& o : program_.signature.outputs) taken = taken || o.name.rfind(prefix_, 0) == 0;
      if (taken) prefix_ += '_';
    }
    names_.resize(g_.nodes.size());
    std::string body;
    protozero::pbf_writer w(body);
    w.add_string(onnx_field::graph_name, "varve");
    region const& all = g_.regions[0];
    for (int k = 0; k < all.inputs; ++k) input(all.node_first + k, w);
    run(all, all.node_first + all.inputs);
    for (int k = 0; k < all.result_count; ++k) output(k, g_.results[all.result_first + k], w);
    for (std::string const& n : nodes_) w.add_message(onnx_field::graph_node, n);
    for (std::string const& t : initializers_) w.add_message(onnx_field::graph_initializer, t);
    std::string set, model;
    protozero::pbf_writer(set).add_int64(onnx_field::opset_version, 17);
    protozero::pbf_writer m(model);
    m.add_int64(onnx_field::model_version, 8), m.add_string(onnx_field::model_producer, "varve");
    m.add_message(onnx_field::model_graph, body), m.add_message(onnx_field::model_opset, set);
    if (model.size() > 0x7FFFFFFF) refuse("the model has 2 GB or more, which the format cannot hold");
    return model;
  }

private:
  using strings = std::vector<std::string>;

  [[noreturn]] static void refuse(std::string const& what) {
    refuse::with<value_error>(("varve: onnx: " + what).c_str());
  }
  [[noreturn]] void refuse(int n, std::string const& what) const {
    refuse("%" + std::to_string(n) + ", " + g_.nodes[n].op->name + ": " + what);
  }
  int operand(node const& nd, int k) const { return g_.edges[nd.first + k]; }

  // ---- values and their names
  std::string fresh() { return prefix_ + std::to_string(count_++); }
  /// Adds an ONNX node with one result, and returns the result's name.
  std::string add_node(char const* type, strings const& inputs,
                       std::initializer_list<onnx_attribute const*> with = {}) {
    std::string const name = fresh();
    emit_as(name, type, inputs, with);
    return name;
  }
  void emit_as(std::string const& name, char const* type, strings const& inputs,
               std::initializer_list<onnx_attribute const*> with = {}) {
    std::string bytes;
    protozero::pbf_writer w(bytes);
    for (std::string const& i : inputs) w.add_string(onnx_field::node_input, i);
    w.add_string(onnx_field::node_output, name);
    w.add_string(onnx_field::node_type, type);
    for (onnx_attribute const* a : with) w.add_message(onnx_field::node_attribute, a->bytes());
    nodes_.push_back(std::move(bytes));
  }
  std::string initializer(std::string const& name, dtype type, dims const& sizes, void const* data) {
    std::string bytes;
    protozero::pbf_writer w(bytes);
    for (extent n : sizes) w.add_int64(onnx_field::tensor_dims, n.number());
    w.add_int32(onnx_field::tensor_type, onnx_dtype(type)), w.add_string(onnx_field::tensor_name, name);
    w.add_bytes(onnx_field::tensor_raw, static_cast<char const*>(data),
                static_cast<std::size_t>(numel(sizes) * itemsize(type)));
    initializers_.push_back(std::move(bytes));
    return name;
  }
  std::string initializer(std::vector<std::int64_t> const& v) {
    std::string& known = numbers_[v];
    if (known.empty()) known = initializer(fresh(), dtype::int64, dims{static_cast<index_t>(v.size())}, v.data());
    return known;
  }
  /// Returns a constant of the graph in the given dtype.
  std::string constant(int n, dtype type) {
    std::string& known = constants_[{n, type}];
    if (known.empty()) {
      tensor const t = contiguous(to(constant_of<tensor>(g_, g_.nodes[n]), type));
      known = initializer(fresh(), type, t.sizes(), t.raw());
    }
    return known;
  }
  std::string value(int n, dtype type) {
    node const& nd = g_.nodes[n];
    if (nd.op->kind == op_kind::constant) return constant(n, type);
    return nd.out.type == type ? names_[static_cast<std::size_t>(n)] : cast(names_[static_cast<std::size_t>(n)], type);
  }
  std::string value(int n) { return value(n, g_.nodes[n].out.type); }
  std::string cast(std::string const& x, dtype type) {
    std::string& known = casts_[{x, type}];
    if (known.empty()) {
      onnx_attribute const to("to", onnx_dtype(type));
      known = add_node("Cast", {x}, {&to});
    }
    return known;
  }
  /// Returns 1 in the given dtype, for operators that ONNX lacks.
  std::string one(dtype type) {
    std::string& known = constants_[{-1, type}];
    if (known.empty()) {
      tensor const t = to(tensor::from_number(1), type);
      known = initializer(fresh(), type, dims{}, t.raw());
    }
    return known;
  }

  // ---- sizes: numbers, or what is computed of the shapes of inputs
  std::string size(extent e) {
    if (!e.is_entry()) return initializer({e.number()});
    std::string& known = sizes_[e.entry()];
    if (!known.empty()) return known;
    size_expression const& x = g_.expressions[e];
    if (x.op == size_op::symbol) return known = symbol(e);
    char const* const types[] = {"", "Add", "Mul", "Div", "Mod", "Min", "Max"};
    std::string const a = size(x.a), b = size(x.b);
    return sizes_[e.entry()] = add_node(types[static_cast<int>(x.op)], {a, b});
  }
  std::string symbol(extent e) {
    for (int k = 0; k < g_.regions[0].inputs; ++k)
      for (int d = 0; d < g_.nodes[k].out.sizes.n; ++d)
        if (g_.nodes[k].out.sizes[d].is_entry() && g_.nodes[k].out.sizes[d].entry() == e.entry()) {
          onnx_attribute const from("start", d), to("end", d + 1);
          return add_node("Shape", {names_[static_cast<std::size_t>(k)]}, {&from, &to});
        }
    refuse("no input has the symbolic size " + g_.expressions.view().text(e) +
           " by itself, which would tell what it is");
  }
  std::string sizes(dims const& d) {
    bool known = true;
    std::vector<std::int64_t> numbers;
    strings parts;
    for (extent e : d) known = known && !e.is_entry();
    for (extent e : d)
      if (known) numbers.push_back(e.number());
      else parts.push_back(size(e));
    if (known) return initializer(numbers);
    onnx_attribute const axis("axis", 0);
    return add_node("Concat", parts, {&axis});
  }

  // ---- inputs and outputs of the model
  std::string info(std::string const& name, meta const& m) const {
    std::string dimensions, typed, type, r;
    protozero::pbf_writer d(dimensions), t(typed);
    for (extent e : m.sizes) {
      std::string one;
      protozero::pbf_writer w(one);
      if (e.is_entry()) w.add_string(onnx_field::dim_param, g_.expressions.view().text(e));
      else w.add_int64(onnx_field::dim_value, e.number());
      d.add_message(onnx_field::shape_dim, one);
    }
    t.add_int32(onnx_field::elements, onnx_dtype(m.type)), t.add_message(onnx_field::shape, dimensions);
    protozero::pbf_writer(type).add_message(onnx_field::type_tensor, typed);
    protozero::pbf_writer w(r);
    w.add_string(onnx_field::value_name, name), w.add_message(onnx_field::value_type, type);
    return r;
  }
  void input(int n, protozero::pbf_writer& w) {
    auto const k = static_cast<std::size_t>(g_.nodes[n].value);
    std::string const& name = program_.signature.inputs[k].name;
    names_[static_cast<std::size_t>(n)] = name;
    if (k >= program_.state.size()) {
      w.add_message(onnx_field::graph_input, info(name, g_.nodes[n].out));
    } else {
      tensor const t = contiguous(tensor(program_.state[k].detach()));
      initializer(name, t.dtype(), t.sizes(), t.raw());
    }
  }
  void output(int k, int n, protozero::pbf_writer& w) {
    output_spec const& o = program_.signature.outputs[static_cast<std::size_t>(k)];
    std::string const name = o.is == output_spec::kind::user_output ? o.name : o.name + ".next";
    emit_as(name, "Identity", {value(n)});
    w.add_message(onnx_field::graph_output, info(name, g_.nodes[n].out));
  }

  // ---- operators
  void run(region const& r, int from) {
    for (int n = from; n < r.node_first + r.node_count; ++n)
      if (g_.nodes[n].op->kind != op_kind::constant && g_.nodes[n].op->kind != op_kind::placeholder)
        names_[static_cast<std::size_t>(n)] = translated(n);
  }
  std::string translated(int n) {
    node const& nd = g_.nodes[n];
    if (nd.function >= 0) refuse(n, "a custom function is known to the process that made it alone");
    if (nd.regions_count) return branches(n);
    if (!nd.op->own) refuse(n, "operators of other libraries are not exported");
    std::string const op = nd.op->name;
    if (nd.op->onnx && nd.op->compares) return compared(nd, nd.op->onnx);
    if (nd.op->onnx) {
      strings x;
      for (int k = 0; k < nd.count; ++k) x.push_back(value(operand(nd, k), nd.out.type));
      return add_node(nd.op->onnx, x);
    }
    if (nd.op == &sym_numel_handle || op == "scalar_tensor")
      return add_node("Squeeze", {cast(size(nd.at[0][0]), nd.out.type)});
    if (std::string r = elementwise(nd, op); !r.empty()) return r;
    if (std::string r = moved(n, nd, op); !r.empty()) return r;
    if (std::string r = contracted(nd, op); !r.empty()) return r;
    refuse(n, "there is no counterpart in ONNX that varve writes");
  }
  std::string compared(node const& nd, char const* type) {
    node const &a = g_.nodes[operand(nd, 0)], &b = g_.nodes[operand(nd, 1)];
    dtype common = result_type(a.out, b.out);
    if (common == dtype::bool_ || common == dtype::uint8) common = dtype::int32; // ONNX has no order of bools
    return add_node(type, {value(operand(nd, 0), common), value(operand(nd, 1), common)});
  }
  std::string elementwise(node const& nd, std::string const& op) {
    auto const x = [&](int k) { return value(operand(nd, k), nd.out.type); };
    if (op == "ne") return add_node("Not", {compared(nd, "Equal")});
    if (op == "where") return add_node("Where", {value(operand(nd, 0), dtype::bool_), x(1), x(2)});
    if (op == "to" || op == "detach" || op == "clone") return add_node("Identity", {x(0)});
    if (op == "rsqrt") return add_node("Reciprocal", {add_node("Sqrt", {x(0)})});
    if (op == "expm1") return add_node("Sub", {add_node("Exp", {x(0)}), one(nd.out.type)});
    if (op == "log1p") return add_node("Log", {add_node("Add", {x(0), one(nd.out.type)})});
    return "";
  }
  std::string moved(int n, node const& nd, std::string const& op) {
    auto const x = [&](int k) { return value(operand(nd, k), nd.out.type); };
    dims const in = nd.count ? g_.nodes[operand(nd, 0)].out.sizes : dims{};
    if (op == "reshape") {
      onnx_attribute const zero("allowzero", 1);
      return add_node("Reshape", {x(0), sizes(nd.out.sizes)}, {&zero});
    }
    if (op == "expand") return add_node("Expand", {x(0), sizes(nd.out.sizes)});
    if (op == "full") return add_node("Expand", {x(0), sizes(nd.out.sizes)});
    if (op == "new_full") return add_node("Expand", {x(1), sizes(nd.out.sizes)});
    if (op == "arange") {
      std::string const from = initializer({0}), step = initializer({1}), to = size(nd.at[0][0]);
      return cast(
          add_node("Range", {add_node("Squeeze", {from}), add_node("Squeeze", {to}), add_node("Squeeze", {step})}),
          nd.out.type);
    }
    if (op == "permute") {
      onnx_attribute const order("perm", numbers(nd.at[0]));
      return add_node("Transpose", {x(0)}, {&order});
    }
    if (op == "slice") {
      std::string const from = size(nd.at[0][1]), to = size(nd.at[0][2]), axis = size(nd.at[0][0]);
      return add_node("Slice", {x(0), from, to, axis, size(nd.at[0][3])});
    }
    if (op == "cat") {
      onnx_attribute const axis("axis", nd.at[0][0].number());
      strings all;
      for (int k = 0; k < nd.count; ++k) all.push_back(x(k));
      return add_node("Concat", all, {&axis});
    }
    if (op == "slice_backward") {
      auto const a = static_cast<std::size_t>(nd.at[1][0].number());
      if (!(nd.at[1][3] == 1) || nd.at[1][1].is_entry() || nd.at[1][2].is_entry() ||
          nd.at[0][static_cast<int>(a)].is_entry())
        refuse(n, "slices of a step beyond 1, or of symbolic bounds, have no gradient in ONNX that varve writes");
      auto const rank = static_cast<std::size_t>(in.n);
      std::vector<std::int64_t> pads(2 * rank);
      pads[a] = nd.at[1][1].number();
      pads[rank + a] = nd.at[0][static_cast<int>(a)].number() - nd.at[1][2].number();
      return add_node("Pad", {x(0), initializer(pads)});
    }
    return "";
  }
  std::string contracted(node const& nd, std::string const& op) {
    auto const x = [&](int k) { return value(operand(nd, k), nd.out.type); };
    if (op == "sum" || op == "amax" || op == "amin") {
      if (nd.at[0].n == 0) return add_node("Identity", {x(0)});
      onnx_attribute const keep("keepdims", nd.at[1][0].number());
      if (op == "sum") return add_node("ReduceSum", {x(0), initializer(numbers(nd.at[0]))}, {&keep});
      onnx_attribute const axes("axes", numbers(nd.at[0]));
      return add_node(op == "amax" ? "ReduceMax" : "ReduceMin", {x(0)}, {&axes, &keep});
    }
    if (op == "argmax") {
      std::string const from = value(operand(nd, 0));
      bool const keep = g_.nodes[operand(nd, 0)].out.sizes.n == nd.out.sizes.n;
      if (nd.at[0].n == 0) return add_node("Sub", {cast(from, nd.out.type), cast(from, nd.out.type)}); // of one element
      onnx_attribute const axis("axis", nd.at[0][0].number()), keeps("keepdims", keep);
      return add_node("ArgMax", {from}, {&axis, &keeps});
    }
    if (op == "mm") return add_node("MatMul", {matrix(nd, 0), matrix(nd, 1)});
    if (op == "gather") {
      onnx_attribute const axis("axis", nd.at[0][0].number());
      return add_node("GatherElements", {x(0), value(operand(nd, 1), dtype::int64)}, {&axis});
    }
    if (op == "scatter_add") {
      onnx_attribute const axis("axis", nd.at[0][0].number()), add("reduction", "add");
      return add_node("ScatterElements", {x(0), value(operand(nd, 1), dtype::int64), x(2)}, {&axis, &add});
    }
    if (op == "one_hot") {
      std::string const classes = initializer({nd.at[0][0].number()}), values = initializer({0, 1});
      return add_node("OneHot", {value(operand(nd, 0), dtype::int64), add_node("Squeeze", {classes}), values});
    }
    if (op == "convolution") return convolved(nd);
    return "";
  }
  std::string matrix(node const& nd, int k) {
    std::string const x = value(operand(nd, k), nd.out.type);
    if (!(nd.at[0].n > k && nd.at[0][k].number() != 0)) return x;
    std::vector<std::int64_t> order;
    for (int d = 0; d < nd.out.sizes.n; ++d) order.push_back(d);
    std::swap(order[order.size() - 1], order[order.size() - 2]);
    onnx_attribute const perm("perm", order);
    return add_node("Transpose", {x}, {&perm});
  }
  /// Writes a convolution. The attributes are {stride}, {padding} and a list: dilations, whether it is transposed, the
  /// groups, and output paddings.
  std::string convolved(node const& nd) {
    int const n = nd.at[0].n;
    std::vector<std::int64_t> pads;
    for (int half = 0; half < 2; ++half)
      for (int k = 0; k < n; ++k) pads.push_back(nd.at[1][k].number());
    onnx_attribute const strides("strides", numbers(nd.at[0])), padding("pads", pads),
        dilations("dilations", numbers(nd.at[2].sub(0, n))), group("group", nd.at[2][n + 1].number()),
        more("output_padding", numbers(nd.at[2].sub(n + 2, nd.at[2].n)));
    strings const x{value(operand(nd, 0), nd.out.type), value(operand(nd, 1), nd.out.type)};
    if (nd.at[2][n].number() == 0) return add_node("Conv", x, {&strides, &padding, &dilations, &group});
    return add_node("ConvTranspose", x, {&strides, &padding, &dilations, &group, &more});
  }
  static std::vector<std::int64_t> numbers(dims const& d) {
    std::vector<std::int64_t> r;
    for (extent e : d) r.push_back(e.number());
    return r;
  }

  /// Writes a `cond`. Its branches are graphs that refer to values outside, so that they need no inputs.
  std::string branches(int n) {
    node const& nd = g_.nodes[n];
    if (std::string(nd.op->name) != "cond")
      refuse(n, "of the operators that carry functions only cond is exported; a loop of a known number of steps can be "
                "written as a loop of C++");
    std::string const condition = add_node("Squeeze", {value(operand(nd, 0), dtype::bool_)});
    onnx_attribute const then("then_branch", branch(nd, 0)), other("else_branch", branch(nd, 1));
    return add_node("If", {condition}, {&then, &other});
  }
  std::string branch(node const& nd, int k) {
    region const& r = g_.regions[nd.regions_first + k];
    if (r.result_count != 1) refuse("cond: functions of several results are not exported");
    // Values computed in a branch are visible only there; constants belong to the whole model.
    auto const outside = std::exchange(nodes_, {});
    auto const casts = casts_;
    auto const known_sizes = sizes_;
    auto const names = names_;
    for (int i = 0; i < r.inputs; ++i)
      names_[static_cast<std::size_t>(r.node_first + i)] =
          value(operand(nd, 1 + static_cast<int>(g_.nodes[r.node_first + i].value)));
    run(r, r.node_first + r.inputs);
    int const result = g_.results[r.result_first];
    std::string const name = add_node("Identity", {value(result)});
    std::string body;
    protozero::pbf_writer w(body);
    for (std::string const& s : nodes_) w.add_message(onnx_field::graph_node, s);
    w.add_string(onnx_field::graph_name, "branch" + std::to_string(k));
    w.add_message(onnx_field::graph_output, info(name, g_.nodes[result].out));
    nodes_ = outside, casts_ = casts, sizes_ = known_sizes, names_ = names;
    return body;
  }

  exported_program const& program_;
  graph g_;
  std::string prefix_ = "_";
  int count_ = 0;
  strings names_, nodes_, initializers_;
  std::map<std::vector<std::int64_t>, std::string> numbers_;
  std::map<std::pair<int, dtype>, std::string> constants_;
  std::map<std::pair<std::string, dtype>, std::string> casts_;
  std::map<index_t, std::string> sizes_;
};
} // namespace detail

/// Returns the bytes of a program's ONNX model. State becomes initializers; user inputs and outputs keep their names.
/// Values written into buffers and inputs become further outputs, `name.next`. Symbolic sizes become named dimensions,
/// and expressions of them are computed from the inputs' shapes. ONNX has no guards or ranges of sizes. Throws
/// `value_error` with the node for operators without a counterpart: loops, custom functions, random numbers.
template <std::same_as<exported_program> P>
std::string to_onnx(P const& program) {
  return detail::onnx_writer(program).write();
}
/// Writes a program as an ONNX model to a file.
template <std::same_as<exported_program> P>
void save_onnx(std::string const& path, P const& program) {
  detail::write_file("save_onnx", path, to_onnx(program));
}
#endif

} // namespace varve

#pragma GCC diagnostic pop
