// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

/// A picture with two linear axes, as SVG: areas of color, curves, points. Coordinates have one decimal, so that
/// pictures are small and the same on every machine.
class chart {
public:
  chart(std::string const& title, double x0, double x1, double y0, double y1, double width = 560, double height = 380)
      : x0_(x0), x1_(x1), y0_(y0), y1_(y1), width_(width), height_(height) {
    text_ = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + number(width) + " " + number(height) +
            "\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\" fill=\"#333\">\n"
            "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n<text x=\"" +
            number(left) + "\" y=\"22\" font-size=\"15\" font-weight=\"bold\">" + title + "</text>\n";
    legend_ = top + 16;
  }
  /// Colors of f(x, y) in `columns` by `rows` fields, from 0 to 1; equal neighbours are one rectangle.
  void field(int columns, int rows, std::vector<double> const& values) {
    double const w = (px(x1_) - px(x0_)) / columns, h = (py(y0_) - py(y1_)) / rows;
    text_ += "<g shape-rendering=\"crispEdges\">\n";
    for (int r = 0; r < rows; ++r)
      for (int c = 0; c < columns;) {
        int const level = shade(values[static_cast<std::size_t>(r * columns + c)]);
        int end = c + 1;
        while (end < columns && shade(values[static_cast<std::size_t>(r * columns + end)]) == level) ++end;
        text_ += "<rect x=\"" + number(px(x0_) + c * w) + "\" y=\"" + number(py(y0_) - (r + 1) * h) + "\" width=\"" +
                 number((end - c) * w) + "\" height=\"" + number(h + 0.3) + "\" fill=\"" + color(level) + "\"/>\n";
        c = end;
      }
    text_ += "</g>\n";
  }
  void axes(std::string const& x_label, std::string const& y_label) {
    for (double v : ticks(x0_, x1_))
      text_ += "<line x1=\"" + number(px(v)) + "\" x2=\"" + number(px(v)) + "\" y1=\"" + number(py(y0_)) + "\" y2=\"" +
               number(py(y0_) + 5) + "\" stroke=\"#888\"/><text x=\"" + number(px(v)) + "\" y=\"" +
               number(py(y0_) + 18) + "\" text-anchor=\"middle\">" + label(v) + "</text>\n";
    for (double v : ticks(y0_, y1_))
      text_ += "<line x1=\"" + number(px(x0_) - 5) + "\" x2=\"" + number(px(x0_)) + "\" y1=\"" + number(py(v)) +
               "\" y2=\"" + number(py(v)) + "\" stroke=\"#888\"/><text x=\"" + number(px(x0_) - 8) + "\" y=\"" +
               number(py(v) + 4) + "\" text-anchor=\"end\">" + label(v) + "</text>\n";
    text_ += "<rect x=\"" + number(px(x0_)) + "\" y=\"" + number(py(y1_)) + "\" width=\"" + number(px(x1_) - px(x0_)) +
             "\" height=\"" + number(py(y0_) - py(y1_)) + "\" fill=\"none\" stroke=\"#888\"/>\n<text x=\"" +
             number((px(x0_) + px(x1_)) / 2) + "\" y=\"" + number(height_ - 8) + "\" text-anchor=\"middle\">" +
             x_label + "</text>\n<text transform=\"translate(14 " + number((py(y0_) + py(y1_)) / 2) +
             ") rotate(-90)\" text-anchor=\"middle\">" + y_label + "</text>\n";
  }
  void curve(std::string const& name, std::string const& stroke, std::vector<double> const& x,
             std::vector<double> const& y, bool dashed = false) {
    std::string const style =
        "fill=\"none\" stroke=\"" + stroke + "\" stroke-width=\"2\"" + (dashed ? " stroke-dasharray=\"6 4\"" : "");
    text_ += "<polyline " + style + " points=\"";
    for (std::size_t k = 0; k < x.size(); ++k)
      if (x[k] >= x0_ && x[k] <= x1_ && y[k] >= y0_ && y[k] <= y1_)
        text_ += number(px(x[k])) + "," + number(py(y[k])) + " ";
    text_ += "\"/>\n";
    if (!name.empty()) {
      text_ += "<line " + style + " x1=\"" + number(width_ - 178) + "\" x2=\"" + number(width_ - 150) + "\" y1=\"" +
               number(legend_) + "\" y2=\"" + number(legend_) + "\"/><text x=\"" + number(width_ - 144) + "\" y=\"" +
               number(legend_ + 4) + "\">" + name + "</text>\n";
      legend_ += 18;
    }
  }
  void point(double x, double y, std::string const& fill, double radius = 3) {
    text_ += "<circle cx=\"" + number(px(x)) + "\" cy=\"" + number(py(y)) + "\" r=\"" + number(radius) + "\" fill=\"" +
             fill + "\" stroke=\"white\" stroke-width=\"0.6\"/>\n";
  }
  /// A rectangle with corners (x0, y0) and (x1, y1). Without a fill it is a frame.
  void rectangle(double x0, double y0, double x1, double y1, std::string const& fill = "") {
    text_ += "<rect x=\"" + number(px(x0)) + "\" y=\"" + number(py(y1)) + "\" width=\"" + number(px(x1) - px(x0)) +
             "\" height=\"" + number(py(y0) - py(y1)) + "\" " +
             (fill.empty() ? "fill=\"none\" stroke=\"#888\"" : "fill=\"" + fill + "\"") + "/>\n";
  }
  /// Text with its middle at x, and y as its base line.
  void text(double x, double y, std::string const& text) {
    text_ +=
        "<text x=\"" + number(px(x)) + "\" y=\"" + number(py(y)) + "\" text-anchor=\"middle\">" + text + "</text>\n";
  }
  void save(std::string const& path) const {
    std::ofstream file(path);
    if (!(file << text_ << "</svg>\n" << std::flush)) throw std::runtime_error(path + ": cannot be written");
  }

private:
  static constexpr double left = 56, right = 16, top = 34, bottom = 46;
  static constexpr int levels = 14;
  double px(double x) const { return left + (width_ - left - right) * (x - x0_) / (x1_ - x0_); }
  double py(double y) const { return height_ - bottom - (height_ - top - bottom) * (y - y0_) / (y1_ - y0_); }
  static std::string number(double v) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f", v + 0.0);
    return text;
  }
  static std::string label(double v) {
    char text[32];
    std::snprintf(text, sizeof text, "%g", std::fabs(v) < 1e-9 ? 0 : v);
    return text;
  }
  static std::vector<double> ticks(double a, double b) {
    double const rough = (b - a) / 5, power = std::pow(10, std::floor(std::log10(rough)));
    double const step = power * (rough / power < 1.5 ? 1 : rough / power < 3.5 ? 2 : 5);
    std::vector<double> r;
    for (double v = std::ceil(a / step - 1e-9) * step; v <= b + 1e-9 * step; v += step) r.push_back(v);
    return r;
  }
  static int shade(double v) { return static_cast<int>(std::clamp(v, 0.0, 1.0) * (levels - 1) + 0.5); }
  static std::string color(int level) { // blue over white to orange
    double const t = 2.0 * level / (levels - 1) - 1;
    double const low[] = {74, 128, 196}, high[] = {240, 150, 60};
    char text[8];
    int rgb[3];
    for (int k = 0; k < 3; ++k) {
      double const end = t < 0 ? low[k] : high[k];
      rgb[k] = static_cast<int>(250 + (end - 250) * std::fabs(t));
    }
    std::snprintf(text, sizeof text, "#%02x%02x%02x", rgb[0] & 255, rgb[1] & 255, rgb[2] & 255);
    return text;
  }

  double x0_, x1_, y0_, y1_, width_, height_, legend_ = 0;
  std::string text_;
};
