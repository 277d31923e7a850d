/* Holds a free port of the loopback: prints its number, and keeps it until its standard input ends. Bound, not listening: with SO_REUSEADDR
 * on both sides the program under test can listen on it, and the kernel gives it to nobody else. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int main(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t n = sizeof at;
	int on = 1, fd = socket(AF_INET, SOCK_STREAM, 0);
	char sink[64];
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) || bind(fd, (struct sockaddr *)&at, n) ||
	    getsockname(fd, (struct sockaddr *)&at, &n)) {
		perror("tool_port");
		return 1;
	}
	printf("%d\n", ntohs(at.sin_port));
	fflush(stdout);
	while (read(0, sink, sizeof sink) > 0)
		;
	return 0;
}
