# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=bash
#
# Completion of weir for bash. What there is comes from the program itself, `weir COMMAND --help` and
# `weir trace --list`, and is asked for once a shell: nothing here has to be kept up to date.

declare -gA _weir_said

# What `weir ARGS` prints. Sets _weir_text.
_weir_ask() {
	local key="$*"

	if [[ ! -v _weir_said[$key] ]]; then
		_weir_said[$key]=$("$@" 2>/dev/null)
	fi
	_weir_text=${_weir_said[$key]}
}

# Lines `-o --output FILE`, with `-` for a letter or a value that is not there.
_weir_options() {
	local line letter long value rest options

	_weir_ask "$1" "$2" --help
	options=${_weir_text#*Options:$'\n'}
	while IFS= read -r line; do
		[[ $line =~ ^\ \ (-([a-zA-Z]),\ |\ \ \ \ )--([a-z-]+)(\ ([^ ]+))? ]] || continue
		letter=${BASH_REMATCH[2]} long=${BASH_REMATCH[3]} value=${BASH_REMATCH[5]}
		rest=${line#*"--$long"}
		# One blank, and then a value; two, and then what it does.
		[[ $rest == "  "* ]] && value=
		printf '%s --%s %s\n' "${letter:+-}${letter:--}" "$long" "${value:--}"
	done <<<"${options%%$'\n\n'*}"
}

# The value of the option in $3, or nothing when it has none, or is none.
_weir_value() {
	local letter long value

	while read -r letter long value; do
		if [[ ($3 == "$letter" || $3 == "$long") && $value != - ]]; then
			printf '%s\n' "$value"
			return
		fi
	done < <(_weir_options "$1" "$2")
}

# COMPREPLY from lines, each of which stands behind what is in $2 and may have blanks. $1: the word so
# far. Readline only replaces what follows the last colon.
_weir_reply() {
	local word=$1 before=$2 one colon=

	[[ $word == *:* ]] && colon=${word%:*}:
	while IFS= read -r one; do
		one=$before$one
		[[ $one == "$word"* ]] && COMPREPLY+=("${one#"$colon"}")
	done
}

# tp:GROUP:NAME, from the folders of tracefs, which are there for root alone.
_weir_tracepoints() {
	local word=$1 events=/sys/kernel/tracing/events item before

	item=${word##*[,!]}
	item=${item#tp:}
	before=${word%"$item"}
	if [[ $item == *:* ]]; then
		events+=/${item%%:*}
		before+=${item%%:*}:
	fi
	_weir_reply "$word" "$before" < <(cd "$events" 2>/dev/null && printf '%s\n' */ | tr -d /)
	compopt -o nospace 2>/dev/null
}

# GROUP, %CLASS, GROUP:NAME and lists of them.
_weir_events() {
	local weir=$1 word=$2 last group

	last=${word##*[,!]}
	if [[ $last == tp:* ]]; then
		_weir_tracepoints "$word"
		return
	fi
	last=${word##*[,:!]}
	_weir_ask "$weir" trace --list
	if [[ $word == *:* ]]; then
		group=${word%%:*}
		group=${group##*[,!]}
		_weir_reply "$word" "${word%"$last"}" \
			< <(sed -n "s/^$group:\([^[:space:]]*\).*/\1/p" <<<"$_weir_text" | sort -u
			    _weir_classes "$group")
	else
		_weir_reply "$word" "${word%"$last"}" \
			< <(cut -d : -f 1 <<<"$_weir_text" | sort -u
			    _weir_classes sys
			    echo tp:)
	fi
	compopt -o nospace 2>/dev/null
}

_weir_classes() {
	[[ $1 == sys ]] && printf '%%%s\n' file desc network process memory signal
}

_weir_files() {
	compopt -o filenames 2>/dev/null
	_weir_reply "$1" "" < <(compgen -f -- "$1")
}

# What `weir top` sorts and groups by.
_weir_top_words() {
	if [[ $1 == --by ]]; then
		printf '%s\n' process thread cgroup container user cpu
	else
		printf '%s\n' cpu total vol invol migr wait p50 p99 max rss cycles ipc pid name
	fi
}

# A value of option $3.
_weir_complete_value() {
	local weir=$1 word=$4

	case $3 in
	-o | --sort | --by)
		# Of weir top; -o is a file elsewhere.
		if [[ $2 == top ]]; then
			_weir_reply "$word" "" < <(_weir_top_words "$3")
		else
			_weir_files "$word"
		fi
		;;
	-e | --events) _weir_events "$weir" "$word" ;;
	-p | --pid) _weir_reply "$word" "" < <(cd /proc && printf '%s\n' [0-9]*) ;;
	-f | --format) _weir_reply "$word" "" < <(printf '%s\n' text json none) ;;
	--time) _weir_reply "$word" "" < <(printf '%s\n' wall mono delta none) ;;
	--color) _weir_reply "$word" "" < <(printf '%s\n' auto always never) ;;
	-u | --uid) _weir_reply "$word" "" < <(compgen -u -- "$word") ;;
	--output | --ledger | --replay | --map | -P | --path | --cgroup) _weir_files "$word" ;;
	esac
}

# The operands: another program's words behind `weir trace` and `record`, a file behind `weir verify`.
_weir_operand() {
	local command=$1 first=$2 at=$3 word=$4

	if [[ $command == @(trace|record) && $at -eq $first ]]; then
		_weir_reply "$word" "" < <(compgen -c -- "$word" | sort -u)
	elif [[ $command == @(trace|record) ]] && declare -F _command_offset >/dev/null; then
		_command_offset "$first"
	elif [[ $command == bench ]]; then
		_weir_reply "$word" "" < <(printf '%s\n' probe order latency throughput)
	elif [[ $command != doctor && $command != top ]]; then
		_weir_files "$word"
	fi
}

_weir() {
	local line=${COMP_LINE:0:COMP_POINT} weir=${COMP_WORDS[0]} word words i option='' operand=0
	local command=${COMP_WORDS[1]}

	COMPREPLY=()
	# As the shell will have them: readline's words end at colons, too.
	read -ra words <<<"$line"
	[[ $line == *[[:space:]] ]] && words+=("")
	word=${words[-1]}
	if ((${#words[@]} == 2)); then
		_weir_ask "$weir" --help
		_weir_reply "$word" "" \
			< <(sed -n 's/^  \([a-z]*\) .*/\1/p' <<<"$_weir_text"; printf '%s\n' help --version)
		return
	fi
	for ((i = 2; i < ${#words[@]} - 1 && !operand; i++)); do
		if [[ -n $option ]]; then
			option=''
		elif [[ ${words[i]} == -- ]]; then
			operand=$((i + 1))
		elif [[ ${words[i]} != -?* ]]; then
			operand=$i
		elif [[ -n $(_weir_value "$weir" "$command" "${words[i]}") ]]; then
			option=${words[i]}
		fi
	done
	if ((operand)); then
		_weir_operand "$command" "$operand" $((${#words[@]} - 1)) "$word"
	elif [[ -n $option ]]; then
		_weir_complete_value "$weir" "$command" "$option" "${word#[\'\"]}"
	elif [[ $word == -* ]]; then
		_weir_reply "$word" "" < <(_weir_options "$weir" "$command" | cut -d ' ' -f 2)
	else
		_weir_operand "$command" $((${#words[@]} - 1)) $((${#words[@]} - 1)) "$word"
	fi
}

complete -F _weir weir
