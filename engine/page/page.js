// The values of a chart under the pointer, or at a cursor that the arrow keys move. Without this script the page has the same tables and
// pictures.
"use strict";
(function () {
	function share(axis, v) { // where a value is on an axis: 0 at its beginning, 1 at its end
		return axis.log ? Math.log(v / axis.low) / Math.log(axis.high / axis.low) : (v - axis.low) / (axis.high - axis.low);
	}

	function value(axis, part) { // what is there on an axis
		return axis.log ? axis.low * Math.pow(axis.high / axis.low, part) : axis.low + part * (axis.high - axis.low);
	}

	function nearest(values, v) { // index of the value that is nearest to v; values ascend
		let low = 0, high = values.length - 1;
		while (high - low > 1) {
			const middle = (low + high) >> 1;
			if (values[middle] < v) low = middle; else high = middle;
		}
		return high >= 0 && Math.abs(values[high] - v) < Math.abs(values[low] - v) ? high : low;
	}

	function number(v) {
		return v === null ? "not finite" : String(Number(v.toPrecision(5)));
	}

	function begin(figure) {
		const data = JSON.parse(figure.querySelector("script").textContent);
		const plot = figure.querySelector(".plot"), svg = plot.querySelector("svg");
		const output = document.createElement("output"), cursor = document.createElementNS(svg.namespaceURI, "line");
		const lines = data.lines.filter(function (l) { return l.x.length; });
		const all = [].concat.apply([], lines.map(function (l) { return l.x; }));
		const points = Array.from(new Set(all)).sort(function (a, b) { return a - b; });
		let at = -1;
		if (!points.length)
			return;
		cursor.setAttribute("class", "cursor");
		cursor.setAttribute("y1", data.box[1]);
		cursor.setAttribute("y2", data.box[1] + data.box[3]);
		output.setAttribute("aria-live", "polite");
		plot.tabIndex = 0;
		plot.setAttribute("role", "group");
		plot.setAttribute("aria-label", figure.querySelector("figcaption").textContent + ". Arrow keys show the values.");
		figure.insertBefore(output, plot.nextSibling);

		function show(i) {
			at = Math.max(0, Math.min(points.length - 1, i));
			const x = points[at], px = data.box[0] + data.box[2] * share(data.x, x);
			cursor.setAttribute("x1", px);
			cursor.setAttribute("x2", px);
			svg.appendChild(cursor);
			output.textContent = data.unit + " " + number(x) + ": " + lines.map(function (l) {
				const k = nearest(l.x, x);
				return l.name + " " + number(l.y[k]) + (l.x[k] === x ? "" : " (at " + number(l.x[k]) + ")");
			}).join(", ");
		}

		function hide() {
			cursor.remove();
			output.textContent = "";
		}

		plot.addEventListener("pointermove", function (event) {
			const box = svg.getBoundingClientRect(), px = (event.clientX - box.left) * svg.viewBox.baseVal.width / box.width;
			show(nearest(points, value(data.x, Math.max(0, Math.min(1, (px - data.box[0]) / data.box[2])))));
		});
		plot.addEventListener("pointerleave", hide);
		plot.addEventListener("blur", hide);
		plot.addEventListener("keydown", function (event) {
			const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: points.length - 1 }[event.key];
			if (to === undefined)
				return;
			event.preventDefault();
			show(to);
		});
	}

	document.querySelectorAll("figure.chart").forEach(begin);
	window.addEventListener("beforeprint", function () {
		document.querySelectorAll("details").forEach(function (d) { d.open = true; });
	});
})();
