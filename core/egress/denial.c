#include "egress/denial.h"

static const struct {
        const char *word, *text;
} table[] = {
        [RV_DENIAL_NONE] = { "", "" },
#define X(name, word, text) [RV_DENIAL_##name] = { word, text },
        RV_DENIALS(X)
#undef X
};

const char *rv_denial_word(enum rv_denial denial)
{
        return (unsigned)denial < _RV_DENIAL_MAX ? table[denial].word : "";
}

const char *rv_denial_text(enum rv_denial denial)
{
        return (unsigned)denial < _RV_DENIAL_MAX ? table[denial].text : "";
}
