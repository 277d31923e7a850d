/* Holds free ports of the loopback with consecutive numbers, as many as an elastic run uses: prints the first number, and keeps the ports
 * until its standard input ends. Bound, not listening: with SO_REUSEADDR on both sides the program under test can listen on them, and the
 * kernel gives them to nobody else. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PORTS = 3 };

/* Returns a socket that is bound to a port, 0: any free one; -1: the port is in use. */
static int hold_port(int port)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons((uint16_t)port)};
	int on = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
	if (fd >= 0 && !setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) && !bind(fd, (struct sockaddr *)&at, sizeof at))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

static int port_of(int fd)
{
	struct sockaddr_in at = {0};
	socklen_t n = sizeof at;
	return getsockname(fd, (struct sockaddr *)&at, &n) ? 0 : ntohs(at.sin_port);
}

int main(void)
{
	int fd[PORTS], port = 0, held = 0;
	char sink[64];
	for (int tries = 0; tries < 1000 && held < PORTS; tries++) {
		while (held > 0)
			close(fd[--held]);
		for (port = 0; held < PORTS && port + held < 65536 && (fd[held] = hold_port(port + held)) >= 0; held++)
			if (!held)
				port = port_of(fd[0]);
	}
	if (held < PORTS || !port) {
		perror("tool_port");
		return 1;
	}
	printf("%d\n", port);
	fflush(stdout);
	while (read(0, sink, sizeof sink) > 0)
		;
	return 0;
}
