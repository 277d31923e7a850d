/* The style sheet and the script of the page, which the Makefile turns into strings. */
#include "page/page.h"

const char gt_page_css[] =
#include <page.css.inc>
    ;

const char gt_page_js[] =
#include <page.js.inc>
    ;
