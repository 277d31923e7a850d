/* The style sheet and the script of the page. The Makefile generates the included files from page.css and page.js. */
#include "page/page.h"

const char gt_page_css[] =
#include <page.css.inc>
    ;

const char gt_page_js[] =
#include <page.js.inc>
    ;
