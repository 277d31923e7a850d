" A .cfg file with the line `schema = 1;` among its first 100 lines is a config of gtrain.
autocmd BufNewFile,BufRead *.cfg
  \ if match(getline(1, 100), '^\s*schema\s*[=:]\s*1\s*;') >= 0 | set filetype=gtrain | endif
