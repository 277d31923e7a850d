"""Writes archives for test_packed_archives.sh into the working directory, from the folder `plain` of two classes of texts: good.zip, and
those that must be refused."""
import io
import os
import tarfile
import warnings
import zipfile

warnings.simplefilter('ignore')  # members of the same name
good = []
for folder, _, files in sorted(os.walk('plain')):
    for f in sorted(files):
        path = os.path.join(folder, f)
        good.append((os.path.relpath(path, 'plain'), open(path, 'rb').read()))


def put_zip(name, more, kind=zipfile.ZIP_DEFLATED):
    with zipfile.ZipFile(name, 'w', kind) as z:
        for path, data in good + more:
            z.writestr(path, data)


def put_tar(name, more):
    with tarfile.open(name, 'w:gz') as t:
        for path, data, kind, link in [(p, d, tarfile.REGTYPE, '') for p, d in good] + more:
            m = tarfile.TarInfo(path)
            m.type, m.linkname, m.size = kind, link, len(data)
            t.addfile(m, io.BytesIO(data))


zeros = b'\0' * (80 << 20)
put_zip('good.zip', [])
put_zip('stored.zip', [], zipfile.ZIP_STORED)
put_zip('other_files.zip', [('readme.md', b'#'), ('__MACOSX/a/._1.txt', b'x'), ('a/.hidden.txt', b'x'), ('a/big.bin', zeros)])
put_zip('twice.zip', [('good/1.txt', b'another text in the same place')])
put_zip('up.zip', [('../../up.txt', b'x')])
put_zip('absolute.zip', [('/tmp/up.txt', b'x')])
put_zip('bomb.zip', [('good/bomb.txt', zeros)])
put_tar('bomb.tar.gz', [('good/bomb.bin', zeros, tarfile.REGTYPE, '')])
put_tar('up.tar.gz', [('good/../../up.txt', b'x', tarfile.REGTYPE, '')])
put_tar('link.tar.gz', [('good/l.txt', b'', tarfile.SYMTYPE, '/etc/passwd')])
put_tar('hard.tar.gz', [('good/l.txt', b'', tarfile.LNKTYPE, 'good/1.txt')])
put_tar('fifo.tar.gz', [('good/l.txt', b'', tarfile.FIFOTYPE, '')])
put_tar('names.tar.gz', [('good/' + 'd' * 120 + '/\u00e9 \x1b[31m.txt', b'a good text, in a folder with a long name', tarfile.REGTYPE, '')])
put_tar('escape.tar.gz', [('good/../\x1b[31m.txt', b'x', tarfile.REGTYPE, '')])
data = open('good.zip', 'rb').read()
open('cut.zip', 'wb').write(data[:-40])
first = 30 + len(good[0][0])  # the deflated content of the first member
open('flipped.zip', 'wb').write(data[:first + 4] + bytes([data[first + 4] ^ 0xff]) + data[first + 5:])
encrypted = bytearray(data)  # the flag bit in the headers
for at in [i for i in range(len(data)) if data[i:i + 4] in (b'PK\1\2', b'PK\3\4')]:
    encrypted[at + (8 if data[at + 2] == 1 else 6)] |= 1
open('encrypted.zip', 'wb').write(encrypted)
data = open('up.tar.gz', 'rb').read()
open('cut.tar.gz', 'wb').write(data[:len(data) // 2])
open('noise.zip', 'wb').write(bytes(range(1, 200)))
open('words.tar.gz', 'wb').write(b'no archive')
open('empty.zip', 'wb')
with zipfile.ZipFile('nothing.zip', 'w') as z:
    z.writestr('readme.md', '#')
