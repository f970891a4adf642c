// SPDX-License-Identifier: BSL-1.0
// Programs as ONNX models: what they hold, and that another runtime computes the same.
#include <varve/export.hpp>
#include <varve/export/onnx.hpp>
#include <varve/nn.hpp>
#include <varve/varve.hpp>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <unistd.h>
#include <varve_test.hpp>

#if __has_include(<protozero/pbf_reader.hpp>)
#include <protozero/pbf_reader.hpp>

namespace vv = varve;
using vv::dim_static, vv::dynamic_dim, vv::export_program;
using vv::dims, vv::dtype, vv::tensor, vv::axis;

namespace {
/// What a model says of itself.
struct model {
  std::vector<std::string> inputs, outputs, initializers, nodes, dimensions;
};
std::string first_string(protozero::pbf_reader m, protozero::pbf_tag_type tag) {
  while (m.next())
    if (m.tag() == tag) return m.get_string();
    else m.skip();
  return "";
}
model read(std::string const& bytes) {
  model r;
  protozero::pbf_reader m(bytes);
  std::int64_t version = 0;
  while (m.next())
    if (m.tag() == 1) version = m.get_int64();
    else if (m.tag() == 7) {
      protozero::pbf_reader g = m.get_message();
      while (g.next())
        if (g.tag() == 1) r.nodes.push_back(first_string(g.get_message(), 4));
        else if (g.tag() == 5) r.initializers.push_back(first_string(g.get_message(), 8));
        else if (g.tag() == 11) {
          protozero::pbf_reader value = g.get_message();
          r.inputs.push_back(first_string(value, 1));
          value.next(2), value = value.get_message(), value.next(1), value = value.get_message();
          value.next(2), value = value.get_message();
          while (value.next(1))
            if (std::string const d = first_string(value.get_message(), 2); !d.empty()) r.dimensions.push_back(d);
        } else if (g.tag() == 12) r.outputs.push_back(first_string(g.get_message(), 1));
        else g.skip();
    } else m.skip();
  CHECK(version == 8);
  return r;
}
tensor numbers(dims const& sizes, double from = 0.1, dtype type = dtype::float32) {
  std::vector<double> v;
  for (vv::index_t k = 0; k < vv::numel(sizes).number(); ++k)
    v.push_back(from + 0.37 * static_cast<double>(k % 11) - 0.05 * static_cast<double>(k % 7));
  return vv::reshape(vv::to(tensor(v), type), sizes);
}

/// Cases for another runtime, in a folder.
class cases {
public:
  cases() : folder_((std::filesystem::temp_directory_path() / ("varve_onnx_" + std::to_string(::getpid()))).string()) {
    std::filesystem::create_directories(folder_);
  }
  cases(cases const&) = delete;
  ~cases() { std::filesystem::remove_all(folder_); }
  template <class... X>
  void add(std::string const& name, vv::exported_program const& p, X const&... x) {
    vv::save_onnx(folder_ + "/" + name + ".onnx", p);
    std::vector<std::string> const inputs = p.user_inputs();
    std::vector<tensor> const all{x...};
    text_ += (text_.empty() ? "[" : ",\n") + std::string("{\"model\": \"") + name + ".onnx\", \"inputs\": [";
    for (std::size_t k = 0; k < all.size(); ++k) put(k, inputs[k], all[k]);
    text_ += "], \"outputs\": [";
    std::vector<tensor> const y = p(all);
    std::size_t user = 0;
    for (auto const& o : p.signature.outputs)
      if (o.is == vv::output_spec::kind::user_output) put(user, o.name, y[user]), ++user;
    text_ += "]}";
  }
  bool agree() {
    std::ofstream(folder_ + "/cases.json") << text_ << "]\n";
#if defined(VARVE_TEST_ONNX)
    return std::system((VARVE_TEST_ONNX " " VARVE_TEST_DIR "/peer/onnx.js " + folder_).c_str()) == 0;
#else
    return true; // configuration said that there is no runtime
#endif
  }

private:
  void put(std::size_t k, std::string const& name, tensor const& t) {
    text_ += (k ? ", " : "") + std::string("{\"name\": \"") + name + "\", \"dtype\": \"" + vv::name(t.dtype()) +
             "\", \"sizes\": [";
    for (int d = 0; d < t.dim(); ++d) text_ += (d ? "," : "") + std::to_string(t.size(d));
    text_ += "], \"data\": [";
    std::size_t n = 0;
    for (double v : t.to_vector()) {
      char number[40];
      std::snprintf(number, sizeof number, "%s%.17g", n++ ? "," : "", v);
      text_ += number;
    }
    text_ += "]}";
  }
  std::string folder_, text_;
};
} // namespace

TEST_CASE("onnx: names, state and named sizes of a model", "[export][onnx]") {
  tensor const w = numbers({4, 5}), b = numbers({5});
  auto const p =
      export_program([=](tensor x) { return vv::relu(vv::matmul(x, w) + b); },
                     {.dynamic_shapes = {{dynamic_dim("rows", 2), dim_static}}, .names = {"x"}})(numbers({3, 4}));
  model const m = read(vv::to_onnx(p));
  CHECK(m.inputs == std::vector<std::string>{"x"});
  CHECK(m.outputs == std::vector<std::string>{"output_0"});
  CHECK(m.nodes == std::vector<std::string>{"MatMul", "Add", "Relu", "Identity"});
  CHECK(m.dimensions == std::vector<std::string>{"rows"});
  CHECK(m.initializers.size() == 2); // the weights
}
TEST_CASE("onnx: results have the names that the export gave them", "[export][onnx]") {
  auto const f = [](tensor x) { return std::pair(vv::relu(x), vv::sum(x)); };
  auto const p = export_program(f, {.names = {"x"}, .results = {"positive", "total"}})(numbers({3, 4}));
  CHECK(read(vv::to_onnx(p)).outputs == std::vector<std::string>{"positive", "total"});
}

TEST_CASE("onnx: another runtime computes the same", "[export][onnx]") {
  cases all;
  tensor const x = numbers({3, 4}), w = numbers({4, 5}, -0.5), b = numbers({5}, -0.2), y = numbers({3, 4}, -1.3);
  auto const layer = [=](tensor x) { return vv::softmax(vv::gelu(vv::matmul(x, w) + b), axis<1>); };
  all.add("layer", export_program(layer)(x), x);
  auto const rows = export_program([=](tensor x) { return vv::reshape(vv::matmul(x, w), dims{-1}) * 2; },
                                   {.dynamic_shapes = {{dynamic_dim("rows", 2), dim_static}}})(x);
  all.add("rows", rows, numbers({7, 4}));
  all.add("pointwise", export_program([](tensor x, tensor y) {
            auto const s = vv::sin(x) + vv::cos(y) - vv::tanh(x * y) / (1 + vv::abs(y));
            auto const e = vv::exp(-x) + vv::log(vv::abs(y) + 1) + vv::sqrt(vv::abs(x)) + vv::rsqrt(vv::abs(y) + 2);
            auto const m = vv::expm1(x * 0.1) + vv::log1p(vv::abs(x)) + vv::sigmoid(y) + vv::softplus(x) + vv::erf(y);
            return vv::where(x > y, s, e) + vv::maximum(m, y) - vv::minimum(x, 0.5) + vv::sign(y) +
                   vv::pow(vv::abs(x), 2) + vv::reciprocal(2 + vv::abs(x)) + vv::relu(y);
          })(x, y),
          x, y);
  all.add("compared", export_program([](tensor x, tensor y) {
            return std::tuple(x < y, x <= 0.5, vv::eq(x, x), vv::ne(x, y), x >= y, vv::to(x > 0, dtype::int64) * 3);
          })(x, y),
          x, y);
  all.add("reduced", export_program([](tensor x) {
            return std::tuple(vv::sum(x), vv::mean(x, axis<0>), vv::amax(x, axis<1>), vv::amin(x),
                              vv::sum(x, axis<1>, vv::keepdim), vv::argmax(x, axis<1>),
                              vv::sum(vv::to(x > 0.3, dtype::int64)));
          })(y),
          y);
  all.add("moved", export_program([](tensor x) {
            return std::tuple(x.t(), vv::slice(x, 1, 1, 4, 2), vv::cat(std::tuple{x, x}, axis<1>), x[1],
                              vv::expand(vv::unsqueeze(x[0], 0), dims{3, 4}), vv::full({2, 2}, 7) + x[0][0],
                              vv::to(vv::arange(4), dtype::float32) * x[2]);
          })(x),
          x);
  tensor const at = tensor({2, 0, 1}).to(dtype::int64);
  all.add("indexed", export_program([](tensor x, tensor at) {
            return std::tuple(vv::index_select(x, axis<1>, at), vv::one_hot(at, 4));
          })(x, at),
          x, at);
  tensor const image = numbers({2, 3, 6, 5}), filter = numbers({4, 3, 3, 3}, -0.4);
  all.add("convolved",
          export_program([](tensor x, tensor w) { return vv::conv2d(x, w, vv::none, 2, 1, 1, 1); })(image, filter),
          image, filter);
  // A training step: loss and gradients of a network, as one program.
  auto const step = [](tensor w, tensor b, tensor x) {
    auto const loss = [](tensor w, tensor b, tensor x) {
      auto const h = vv::tanh(vv::matmul(x, w) + b);
      return vv::sum(h * h) + vv::sum(vv::slice(h, 0, 1, 3));
    };
    auto const [gw, gb] = vv::grad<0, 1>(loss)(w, b, x);
    return std::tuple(loss(w, b, x), w - 0.1 * gw, b - 0.1 * gb);
  };
  all.add("training", export_program(step)(w, b, x), w, b, x);
  auto const either = [](tensor x) {
    return vv::cond(vv::sum(x) > 0, [](tensor x) { return x * 2 + vv::sum(x); }, [](tensor x) { return x - 1; }, x);
  };
  auto const chosen = export_program(either)(x);
  all.add("cond_true", chosen, x);
  all.add("cond_false", chosen, tensor(x * -1.0));
  CHECK(all.agree());
}

TEST_CASE("onnx: what has no counterpart is refused by its node", "[export][onnx]") {
  auto const loop = export_program([](tensor x) {
    return std::get<0>(vv::scan([](tensor c, tensor x) { return std::pair(c + x, c); }, x[0], x));
  })(numbers({3}));
  CHECK_THROWS_WITH(vv::to_onnx(loop), ContainsText("scan") && ContainsText("only cond is exported"));
  auto const drawn = export_program([](tensor x) { return x + vv::randn({3}); })(numbers({3}));
  CHECK_THROWS_WITH(vv::to_onnx(drawn),
                    ContainsText("varve: onnx: %") && ContainsText("randn: there is no counterpart"));
}
#endif
