// SPDX-License-Identifier: Apache-2.0
/* Which claim a kernel's results support, by the strictest bound that all of them satisfy (in the manner of Demmel et al.,
 * "Grading the BLAS"). src/accuracy/README.md defines each grade. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "src/record/record.h"

enum nb_grade {
    NB_GRADE_NONE, /* nothing to grade: no number in the exact results, or not run */
    NB_GRADE_F,    /* NaN, Inf or 0 where a number belongs, a kernel that does not come back, or none of the others */
    NB_GRADE_D, /* ||error|| <= NB_NORMWISE_U u ||y|| in every row; or within the bound and NB_NORMWISE_SHARE ||y|| */
    NB_GRADE_C, /* at most NB_NOISE_RATIO times what half an ulp of input noise does */
    NB_GRADE_B, /* every element within the a-priori bound of the declared algorithm, and half of the digits in norm */
    NB_GRADE_A, /* every element within 1 ulp, and no bias */
    NB_GRADE_A_PLUS, /* every element correctly rounded */
    NB_N_GRADES
};
#define NB_COMPONENTWISE_ULP 1.0
#define NB_BIAS_U 0.05
#define NB_NOISE_RATIO 2.0
#define NB_NORMWISE_U 2.0
#define NB_NORMWISE_SHARE 0.1

const char *nb_grade_name(enum nb_grade grade); /* "A+"; "-" for none */
/* "A+", "b" ...; NB_GRADE_NONE: no such grade. */
enum nb_grade nb_grade_parse(const char *text);

/* The grade of one case. */
struct nb_graded {
    enum nb_grade grade;
    bool declared;   /* the case lies in the range for which the kernel claims its accuracy */
    double severity; /* orders cases of one grade: the larger, the nearer to the next lower one */
    char text[200];  /* the figure that set the grade */
};
void nb_grade_case(const struct nb_record *r, struct nb_graded *out);
/* The lower grade; of the same grade the more severe one. Any is worse than none. */
bool nb_graded_is_worse(const struct nb_graded *a, const struct nb_graded *b);

/* Of the input of a bug report: is the result of use, whatever its algorithm is excused for? No failure, no NaN, Inf or 0 where a number
 * belongs, and an error that keeps half of the dtype's digits, ||error|| <= sqrt(u) ||y||, or that 4 ulp or 4 times the noise of the
 * inputs explain. */
#define NB_SURVIVAL_NOISE_RATIO 8.0 /* noise counts as at least half an ulp */
bool nb_grade_survives(const struct nb_record *r);

/* One variant with one formula, over all its cases. */
/* The largest of several cases; NaN: not measured. */
struct nb_grade_figures {
    double max_ulp, componentwise_ulp, bias_u, gain_u, bound_ratio, noise_ratio;
};

struct nb_grade_line {
    const struct nb_record *first; /* of its records: who it is */
    char *kernel, *name;           /* "rmsnorm_twopass"; the variant and the formula; owned */
    const char *formula;           /* in the name: "root:div_sqrt/cast:before", axes that are not as usual; "default" */
    struct nb_graded declared, all;
    const struct nb_record *why_declared, *why_all; /* the cases that set them; null: no case */
    int64_t n_cases, n_declared;
    const struct nb_record *lost; /* the first that nb_grade_survives() denies; null: none */
    /* Over the declared range; over all finite inputs where no case lies in it. */
    struct nb_grade_figures figures;
    double correct;
    int64_t n_nan, n_inf, n_zero; /* over all finite inputs */
};

struct nb_grades {
    struct nb_grade_line *lines; /* by op, kernel, dtype, formula, width */
    size_t n;
};

/* Of those records that have the label (null: of all). Borrows the records. */
void nb_grades_make(struct nb_grades *grades, const struct nb_results *results, const char *label);
void nb_grades_release(struct nb_grades *grades);
