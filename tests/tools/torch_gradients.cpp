// SPDX-License-Identifier: Apache-2.0
/* Records what PyTorch's backward passes return on a CPU (with one thread), as .npy files of f32 (tests/data/README.md says which). Needs no
 * Python at run time; the libraries of `pip install --no-deps torch nvidia-cuda-runtime nvidia-cuda-cupti` under SITE are enough:
 *   g++ -std=c++20 -O1 -I$SITE/torch/include -I$SITE/torch/include/torch/csrc/api/include tests/tools/torch_gradients.cpp -o torch_gradients
 *     -L$SITE/torch/lib -Wl,--no-as-needed -ltorch_cpu -lc10 -Wl,--unresolved-symbols=ignore-in-shared-libs
 *     -Wl,-rpath,$SITE/torch/lib:$SITE/nvidia/cu13/lib
 *   ./torch_gradients tests/data [THREADS] */
#include <ATen/Parallel.h>
#include <torch/torch.h>

#include <cstdint>
#include <fstream>
#include <iostream>
#include <string>
#include <vector>

using torch::Tensor;

/* f32, C order, version 1: 10 bytes, a header of the length that bytes 8 and 9 give, the numbers. */
static Tensor read_npy(const std::string &path, int64_t rows, int64_t cols) {
    std::ifstream in(path, std::ios::binary);
    std::vector<char> bytes((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    if (bytes.size() < 10) throw std::runtime_error("cannot read " + path);
    const size_t start = 10 + (uint8_t)bytes[8] + 256 * (size_t)(uint8_t)bytes[9];
    if (bytes.size() < start + (size_t)(rows * cols) * 4) throw std::runtime_error(path + " is too short");
    Tensor t = torch::empty({rows, cols});
    memcpy(t.data_ptr<float>(), bytes.data() + start, (size_t)(rows * cols) * 4);
    return t;
}

static void write_npy(const std::string &path, const Tensor &value) {
    const Tensor t = value.detach().to(torch::kFloat).contiguous();
    std::string shape = std::to_string(t.size(0)) + ",";
    if (t.dim() == 2) shape += " " + std::to_string(t.size(1));
    std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + shape + "), }";
    header.append(63 - (10 + header.size()) % 64, ' ');
    header += '\n';
    std::ofstream out(path, std::ios::binary);
    const uint16_t length = (uint16_t)header.size();
    out.write("\x93NUMPY\x01\x00", 8).write((const char *)&length, 2).write(header.data(), (int64_t)header.size());
    out.write((const char *)t.data_ptr<float>(), t.numel() * 4);
}

enum Op { LAYERNORM, RMSNORM };

/* dx, dgamma and, of LayerNorm, dbeta of one backward pass in the dtype. */
static std::vector<Tensor> gradients(Op op, Tensor x, Tensor gamma, Tensor beta, const Tensor &dy, torch::Dtype dtype,
                                     double eps) {
    const int64_t cols = x.size(1);
    x = x.to(dtype).detach().requires_grad_(true);
    gamma = gamma.reshape({cols}).to(dtype).detach().requires_grad_(true);
    beta = beta.reshape({cols}).to(dtype).detach().requires_grad_(true);
    const Tensor y =
        op == LAYERNORM ? torch::layer_norm(x, {cols}, gamma, beta, eps) : at::rms_norm(x, {cols}, gamma, eps);
    y.backward(dy.to(dtype));
    std::vector<Tensor> out = {x.grad(), gamma.grad()};
    if (op == LAYERNORM) out.push_back(beta.grad());
    return out;
}

static void record(const std::string &stem, Op op, const std::string &suffix, const std::vector<Tensor> &values,
                   bool with_dx) {
    static const char *const names[] = {"dx", "dgamma", "dbeta"};
    const std::string base = stem + (op == LAYERNORM ? "_layernorm_" : "_rmsnorm_") + suffix;
    for (size_t i = with_dx ? 0 : 1; i < values.size(); i++) write_npy(base + names[i] + "_torch.npy", values[i]);
}

/* Row r, column i: a grid of numbers that bf16 has, no row constant. */
static Tensor grid(int64_t rows, int64_t cols) {
    Tensor t = torch::empty({rows, cols});
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < cols; i++) t[r][i] = (float)((r * 7 + i * i * 3) % 16 - 8) / 8;
    return t;
}

int main(int argc, char **argv) {
    at::set_num_threads(argc > 2 ? std::atoi(argv[2]) : 1);
    const std::string folder = argc > 1 ? argv[1] : "tests/data", site = folder + "/minilm_layer0_out";
    const int64_t rows = 64, cols = 384;
    const Tensor x = read_npy(site + "_x.npy", rows, cols), dy = read_npy(site + "_dy.npy", rows, cols);
    const Tensor gamma = read_npy(site + "_gamma.npy", 1, cols), beta = read_npy(site + "_beta.npy", 1, cols);
    for (Op op : {LAYERNORM, RMSNORM}) {
        const double eps = op == LAYERNORM ? 1e-12 : 1e-6;
        record(site, op, "", gradients(op, x, gamma, beta, dy, torch::kFloat, eps), true);
        record(site, op, "bf16_", gradients(op, x, gamma, beta, dy, torch::kBFloat16, eps), true);
        const Tensor ones = torch::ones({4096, 8}), first = torch::ones({1, 8});
        record(folder + "/grid_4096x8", op, "bf16_",
               gradients(op, grid(4096, 8), first, first, ones, torch::kBFloat16, 1e-5), false);
    }
    std::cout << "PyTorch " << TORCH_VERSION << "\n";
}
