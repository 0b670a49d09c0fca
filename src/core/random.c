// SPDX-License-Identifier: Apache-2.0
/* The normal quantile and the two functions it and the distributions need, written out so that no C library's last bit
 * decides what is measured. Built with -ffp-contract=off. */
#include "src/core/random.h"

#include "src/core/bits.h"

struct nb_random nb_random_stream(uint64_t seed, uint64_t stream) {
    return (struct nb_random){nb_random_mix(nb_random_mix(seed + 0x9e3779b97f4a7c15u) + stream * 0xd1342543de82ef95u)};
}

static const double ln2_high = 0x1.62e42fefa38p-1, ln2_low = 0x1.ef35793c7673p-45; /* ln 2 in two parts */

/* x = 2^e m, m in [sqrt(1/2), sqrt(2)); log m = 2 atanh(s), s = (m - 1) / (m + 1), |s| < 0.172: the series to s^19 errs by less
 * than 2e-17. For positive normal x. */
static double portable_log(double x) {
    const uint64_t sqrt_half = 0x3fe6a09e667f3bcdu;
    uint64_t u = nb_double_bits(x) - sqrt_half;
    int64_t e = (int64_t)u >> 52;
    double m = nb_double_of((u & 0x000fffffffffffffu) + sqrt_half);
    double s = (m - 1) / (m + 1), z = s * s, sum = 1.0 / 19;
    for (int k = 17; k >= 1; k -= 2) sum = sum * z + 1.0 / k;
    return (double)e * ln2_high + (2 * s * sum + (double)e * ln2_low);
}

/* x = k ln 2 + r, |r| < 0.347: the Taylor series to r^14 errs by less than 1e-18. For |x| < 700. */
double nb_portable_exp(double x) {
    static const double reciprocals[] = {0,       1,       1.0 / 2,  1.0 / 3,  1.0 / 4,  1.0 / 5,  1.0 / 6, 1.0 / 7,
                                         1.0 / 8, 1.0 / 9, 1.0 / 10, 1.0 / 11, 1.0 / 12, 1.0 / 13, 1.0 / 14};
    double scaled = x * 0x1.71547652b82fep0; /* x / ln 2 */
    int64_t k = (int64_t)(scaled + (scaled < 0 ? -0.5 : 0.5));
    double r = (x - (double)k * ln2_high) - (double)k * ln2_low, sum = 1;
    for (int i = 14; i >= 1; i--) sum = sum * (r * reciprocals[i]) + 1;
    return sum * nb_double_of((uint64_t)(k + 1023) << 52);
}

/* Numerators and denominators of AS 241, constant term first. */
static const double centre[2][8] = {
    {3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4,
     4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3},
    {1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3, 2.1213794301586595867e4,
     3.9307895800092710610e4, 2.8729085735721942674e4, 5.2264952788528545610e3}};
static const double middle[2][8] = {
    {1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0, 3.64784832476320460504e0,
     1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4},
    {1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1, 1.48103976427480074590e-1,
     1.51986665636164571966e-2, 5.47593808499534494600e-4, 1.05075007164441684324e-9}};
static const double tail[2][8] = {
    {6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0, 2.96560571828504891230e-1,
     2.65321895265761230930e-2, 1.24266094738807843860e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7},
    {1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2, 7.86869131145613259100e-4,
     1.84631831751005468180e-5, 1.42151175831644588870e-7, 2.04426310338993978564e-15}};

static double ratio(const double c[2][8], double r) {
    double p = c[0][7], q = c[1][7];
    for (int i = 6; i >= 0; i--) {
        p = p * r + c[0][i];
        q = q * r + c[1][i];
    }
    return p / q;
}

/* The square root is IEEE's, correctly rounded on every machine. */
double nb_normal_quantile(double p) {
    double q = p - 0.5;
    if (q >= -0.425 && q <= 0.425) return q * ratio(centre, 0.180625 - q * q);
    double r = __builtin_sqrt(-portable_log(q < 0 ? p : 1 - p));
    double z = r <= 5 ? ratio(middle, r - 1.6) : ratio(tail, r - 5);
    return q < 0 ? -z : z;
}
