"""Writes arrays in NumPy's format for test_numpy_arrays.sh into the working directory, without NumPy: the same images as IDX, .npy and .npz
files, the same rows as CSV, .npy and .npz files, and files that must be refused."""
import random
import struct
import zipfile

CODES = {'|u1': 'B', '<i4': 'i', '<i8': 'q', '<f4': 'f', '<f8': 'd'}


def npy(descr, shape, values, version=1, fortran=False, raw=None):
    text = "{'descr': '%s', 'fortran_order': %s, 'shape': (%s), }" % (descr, fortran, ''.join('%d, ' % n for n in shape))
    size = 2 if version == 1 else 4
    text += ' ' * (-(8 + size + len(text) + 1) % 64) + '\n'
    head = b'\x93NUMPY' + bytes([version, 0]) + struct.pack('<H' if version == 1 else '<I', len(text)) + text.encode()
    return head + (struct.pack('<%d%s' % (len(values), CODES[descr]), *values) if raw is None else raw)


def npz(name, kind=zipfile.ZIP_STORED, **arrays):
    with zipfile.ZipFile(name, 'w', kind) as z:
        for key, data in arrays.items():
            z.writestr(key + '.npy', data)


def put(name, data):
    with open(name, 'wb') as f:
        f.write(data)


# ---- images ----
random.seed(1)
N, C, S = 120, 3, 8
labels = [i % 3 for i in range(N)]
images = [[[[max(0, min(255, 60 + 60 * (c == labels[i]) + random.randrange(40))) for x in range(S)] for y in range(S)] for c in range(C)]
          for i in range(N)]
chw = [v for i in images for c in i for y in c for v in y]
hwc = [images[i][c][y][x] for i in range(N) for y in range(S) for x in range(S) for c in range(C)]
put('images.idx', struct.pack('>4B4I', 0, 0, 8, 4, N, C, S, S) + bytes(chw))
put('labels.idx', struct.pack('>4BI', 0, 0, 8, 1, N) + bytes(labels))
x, last, y = npy('|u1', (N, C, S, S), chw), npy('|u1', (N, S, S, C), hwc), npy('<i8', (N,), labels)
put('x.npy', x)
put('y.npy', npy('<i4', (N, 1), labels, version=2))
npz('plain.npz', x=x, y=y)
npz('packed.npz', zipfile.ZIP_DEFLATED, labels=npy('|u1', (N,), labels, version=3), images=last)
half = N // 2 * C * S * S
parts = [npy('|u1', (N // 2, C, S, S), chw[:half]), npy('|u1', (N // 2, C, S, S), chw[half:])]
halves = [npy('<i8', (N // 2,), labels[:N // 2]), npy('<i8', (N // 2,), labels[N // 2:])]
npz('splits.npz', x_train=parts[0], y_train=halves[0], x_val=parts[1], y_val=halves[1], x_test=parts[1], y_test=halves[1])
npz('bad_real.npz', x=npy('<f4', (N, 1, S, S), [v / 256 for v in chw[:N * S * S]]), y=y)
npz('bad_hot.npz', x=x, y=npy('<f4', (N, 3), [float(labels[i] == k) for i in range(N) for k in range(3)]))
npz('bad_count.npz', x=x, y=npy('<i8', (N - 1,), labels[1:]))
npz('bad_label.npz', x=x, y=npy('<i8', (N,), [-1] + labels[1:]))
npz('bad_objects.npz', x=x, y=npy('|O', (N,), [], raw=b'\x80\x04.'))
npz('bad_order.npz', x=npy('|u1', (N, C, S, S), chw, fortran=True), y=y)
npz('bad_endian.npz', x=x, y=npy('>i4', (N,), [], raw=struct.pack('>%di' % N, *labels)))
npz('bad_short.npz', x=x[:-5], y=y)
npz('bad_long.npz', x=x + b'12345', y=y)
npz('bad_huge.npz', x=npy('|u1', (1 << 40, C, S, S), [], raw=b''), y=npy('<i8', (1 << 40,), [], raw=b''))
npz('bad_bomb.npz', zipfile.ZIP_DEFLATED, y=npy('|u1', (1 << 17,), [], raw=bytes(1 << 17)),
    x=npy('|u1', (1 << 17, 1, 32, 32), [], raw=bytes(1 << 27)))
npz('bad_alone.npz', a=x)
with zipfile.ZipFile('bad_empty.npz', 'w') as z:
    z.writestr('readme.txt', 'x')
put('bad_cut.npz', open('plain.npz', 'rb').read()[:-100])
put('bad_noise.npz', b'no arrays')
flipped = bytearray(open('plain.npz', 'rb').read())
flipped[5000] ^= 255  # inside of the elements of x
put('bad_flipped.npz', flipped)
put('cut.npy', x[:-1])

# ---- rows ----
rows = []
for i in range(240):
    a, b, k = random.gauss(0, 1), random.gauss(0, 1e-6), random.randrange(4)
    a = struct.unpack('f', struct.pack('f', a))[0]
    rows.append((a, b, k, 'réd' if k % 2 else 'blue', int(a + k > 1.5)))


def shortest(v):  # of a float32, as NumPy and pandas write it
    return next(t for t in ('%.*g' % (p, v) for p in range(6, 10)) if struct.pack('f', float(t)) == struct.pack('f', v))


def real(text):
    return text if '.' in text or 'e' in text else text + '.0'


with open('rows.csv', 'w') as f:
    f.write('x,b,k,c,y\n')
    for i, (a, b, k, c, t) in enumerate(rows):
        f.write('%s,%r,%d,%s,%d\n' % ('' if i % 31 == 5 else real(shortest(a)), b, k, c, t))
n = len(rows)
x = npy('<f4', (n, 1), [float('nan') if i % 31 == 5 else r[0] for i, r in enumerate(rows)])
words = npy('<U4', (n,), [], raw=b''.join(r[3].ljust(4, '\0').encode('utf-32-le') for r in rows))
columns = dict(x=x, b=npy('<f8', (n,), [r[1] for r in rows]), k=npy('<i8', (n,), [r[2] for r in rows]), c=words,
               y=npy('|u1', (n,), [r[4] for r in rows]))
npz('rows.npz', **columns)
npz('rows_packed.npz', zipfile.ZIP_DEFLATED, **columns)
with open('bare.csv', 'w') as f:
    for a, b, k, c, t in rows:
        f.write('%r,%r,%r,%r\n' % (a, b, float(k), float(t)))
put('bare.npy', npy('<f8', (n, 4), [float(v) for a, b, k, c, t in rows for v in (a, b, k, t)]))
npz('bad_rows.npz', x=x, y=npy('<i8', (n - 1,), [0] * (n - 1)))
npz('bad_inf.npz', x=npy('<f4', (n,), [float('inf')] + [i / 7 for i in range(n - 1)]), y=columns['y'])
