#include "base/spread.h"
#include "tap.h"

#include <math.h>

static void medians_and_intervals(void) {
    double none[1] = {0}, one[] = {3}, even[] = {4, 1, 3, 2};
    struct spread s = spread_of(none, 0);
    CHECK(s.n == 0 && isnan(s.median) && isnan(s.low));
    s = spread_of(one, 1);
    CHECK(s.median == 3 && s.low == 3 && s.high == 3);
    s = spread_of(even, 4);
    CHECK(s.median == 2.5 && s.low == 1 && s.high == 4);
    double many[400];
    for (int i = 0; i < 400; i++)
        many[i] = (i * 151) % 400;
    s = spread_of(many, 400);
    CHECK(s.median == 199.5 && s.low == 179 && s.high == 220);
    many[3] = 1e300; /* an outlier moves nothing */
    CHECK(spread_of(many, 400).median == 200.5);
}

static const struct tap_case cases[] = {{"medians and their intervals", medians_and_intervals}};
TAP_CASES(cases)
