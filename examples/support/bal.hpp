// SPDX-License-Identifier: BSL-1.0
#pragma once
#include <cmath>
#include <fstream>
#include <istream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

/// A problem of "Bundle Adjustment in the Large": which camera saw which point where, and first guesses of both.
struct bal_problem {
  static constexpr std::size_t camera_size = 9,
                               point_size = 3;  // rotation 3, translation 3, focal length, two distortions; position
  std::vector<std::size_t> camera_of, point_of; // of each observation
  std::vector<double> seen;                     // two numbers for each observation
  std::vector<double> cameras, points;
  std::size_t size() const { return camera_of.size(); }
  /// The camera's numbers and then the point's, for each observation.
  std::vector<double> parameters() const {
    std::vector<double> r;
    for (std::size_t k = 0; k < size(); ++k) {
      r.insert(r.end(), &cameras[camera_of[k] * camera_size], &cameras[camera_of[k] * camera_size] + camera_size);
      r.insert(r.end(), &points[point_of[k] * point_size], &points[point_of[k] * point_size] + point_size);
    }
    return r;
  }
};

/// Reads `cameras points observations`, a line `camera point x y` for each observation, then the numbers of the cameras
/// and those of the points, one a line. Whatever is malformed is an error that names the line.
inline bal_problem read_bal(std::istream& file, std::string const& path) {
  bal_problem p;
  std::size_t line_number = 0;
  auto const fail = [&](std::string const& what) {
    throw std::runtime_error(path + ":" + std::to_string(line_number) + ": " + what);
  };
  std::string line;
  auto const next_line = [&](char const* expected, auto&... numbers) {
    ++line_number;
    if (!std::getline(file, line)) fail("the file ends, but " + std::string(expected) + " expected");
    std::istringstream in(line);
    if (!(in >> ... >> numbers) || !(in >> std::ws).eof()) fail(std::string(expected) + " expected");
  };
  long long cameras, points, observations;
  next_line("`cameras points observations`", cameras, points, observations);
  if (cameras < 1 || points < 1 || observations < 1) fail("counts must be positive");
  for (long long k = 0; k < observations; ++k) {
    long long camera, point;
    double x, y;
    next_line("`camera point x y`", camera, point, x, y);
    if (camera < 0 || camera >= cameras) fail("camera " + std::to_string(camera) + " is out of range");
    if (point < 0 || point >= points) fail("point " + std::to_string(point) + " is out of range");
    p.camera_of.push_back(static_cast<std::size_t>(camera));
    p.point_of.push_back(static_cast<std::size_t>(point));
    p.seen.push_back(x);
    p.seen.push_back(y);
  }
  auto const read_numbers = [&](std::vector<double>& to, std::size_t count, char const* expected) {
    for (double number; to.size() < count; to.push_back(number)) next_line(expected, number);
  };
  read_numbers(p.cameras, static_cast<std::size_t>(cameras) * bal_problem::camera_size, "a number of a camera");
  read_numbers(p.points, static_cast<std::size_t>(points) * bal_problem::point_size, "a number of a point");
  while (std::getline(file, line)) {
    ++line_number;
    if (line.find_first_not_of(" \t\r") != std::string::npos) fail("end of file expected");
  }
  return p;
}
inline bal_problem load_bal(std::string const& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(path + ": cannot be opened");
  return read_bal(file, path);
}
